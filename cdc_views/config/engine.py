"""The settings of the PySpark driver."""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from cdc_views.config.section import TEN_YEARS_S, Section

SHORT_LIVED: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"}
"""`engine.spark_conf` of a driver that runs for minutes: the JVM's second compiler pays off after about ten.

Without that compiler, the JVM reserves 48 MB for compiled code instead of 240. The classes that Spark generates for its
queries fill 48 MB in half an hour, and then the JVM fails with a `VirtualMachineError`.
"""
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""The same for a driver with few rows: generating and compiling Java for a query takes longer than interpreting it."""
# Settings of Spark SQL that say how a query is run, not what it means. Others, such as the time zone, ANSI mode and the
# legacy ones, are the same in every project: a stored view would be wrong after a change of them.
_TUNING: Final = (
    *("adaptive.", "autoBroadcastJoinThreshold", "broadcastTimeout", "codegen.", "debug.maxToStringFields"),
    *("execution.arrow.maxRecordsPerBatch", "files.maxPartition", "files.minPartition", "files.openCostInBytes"),
    *("inMemoryColumnarStorage.", "join.", "maxPlanStringLength", "objectHashAggregate.", "shuffle.", "ui."),
)


class EngineSettings(Section):
    """The PySpark driver."""

    spark_master: str = Field("local[2]", description="Spark master URL")
    driver_memory: str = Field("2g", description="heap of the driver's JVM")
    spark_conf: dict[str, str] = Field(
        default_factory=dict,
        description="additional Spark settings; of those of Spark SQL only such as cannot change a result",
    )
    parallel_commits: int = Field(
        2,
        ge=1,
        le=64,
        description="how many tables Spark commits or reads in bulk, or views it computes, at the same time",
    )
    idle_epoch_interval_s: float = Field(
        5, gt=0, le=TEN_YEARS_S, description="how often the position is published while nothing changes"
    )
    lock_timeout_s: float = Field(
        30, ge=0, le=TEN_YEARS_S, description="how long to wait for the lock of an engine that is ending"
    )
    retry_s: float = Field(
        300,
        ge=0,
        le=TEN_YEARS_S,
        description="how long after its last epoch a running engine waits for services that are down, before it ends",
    )
    niceness: int = Field(
        5,
        ge=0,
        le=19,
        description="niceness of an engine and a rebuild: other processes of the machine, such as readers, go first",
    )

    @property
    def is_local(self) -> bool:
        """Whether the tasks of Spark run on this machine."""
        return self.spark_master.startswith("local")

    @field_validator("spark_conf")
    @classmethod
    def _require_tuning(cls, value: dict[str, str]) -> dict[str, str]:
        prefix = "spark.sql."
        for name in value:
            if name.startswith(prefix) and not name.removeprefix(prefix).startswith(_TUNING):
                raise ValueError(
                    f'"{name}" may change the result of a view; wanted settings that only say how a query is run'
                )
        return value
