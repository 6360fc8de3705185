// The stages of the data flow: where each is, how far behind, and how fast.

import { h } from "../dom.js";
import { bytes, number, rate, seconds } from "../format.js";

const NAMES = { postgres: "Postgres", connect: "Debezium", kafka: "Kafka", engine: "Engine", readers: "Readers" };
const STATES = { good: "works", bad: "does not work", unknown: "not known" };

/** A list item for each stage. */
export function flow(stages) {
  return stages.map((stage) =>
    h(
      "li",
      { class: `stage ${stage.state}`, "data-stage": stage.name },
      h(
        "h2",
        {},
        h("span", { class: `dot ${stage.state}`, title: STATES[stage.state] }),
        NAMES[stage.name],
        h("span", { class: "hidden" }, ` ${STATES[stage.state]}`),
      ),
      h("p", { class: "dim" }, stage.text),
      h(
        "dl",
        {},
        facts(stage).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
      ),
    ),
  );
}

function facts(stage) {
  const isEstimate = stage.lag_offsets !== null; // the bytes of records: 0 says nothing more
  const behind = [
    isEstimate && `${number(stage.lag_offsets)} records`,
    isEstimate && stage.lag_bytes > 0 && `about ${bytes(stage.lag_bytes)}`,
    !isEstimate && stage.lag_bytes !== null && bytes(stage.lag_bytes),
    stage.lag_seconds !== null && seconds(stage.lag_seconds),
  ].filter(Boolean);
  return [
    stage.position !== null && ["position", stage.position],
    behind.length > 0 && [stage.name === "readers" ? "age" : "behind", behind.join(", ")],
    stage.bytes_per_second !== null && ["rate", `${bytes(stage.bytes_per_second)}/s`],
    stage.records_per_second !== null && ["rate", rate(stage.records_per_second, "records")],
    stage.changes_per_second !== null && ["rate", rate(stage.changes_per_second, "changes")],
    stage.epochs_per_minute !== null && ["rate", `${number(stage.epochs_per_minute)} epochs/min`],
  ].filter(Boolean);
}
