"""The pinned files of the Docker images: `python -m cdc_views.stack.image_files FOLDER`.

`FOLDER/postgres` gets the server's binaries, `FOLDER/kafka` the jars of the broker and Connect, and `FOLDER/plugins`
Debezium. This is a separate build step, because it takes minutes and changes only with the lock.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cdc_views.stack.fetch import fetch, kafka_jars, plugin_folder, postgres_home


def lay_out(folder: Path) -> None:
    """Fetch and check missing files, and copy all to where the images take them from. Raises DownloadFailed."""
    fetch(progress=False, groups=["postgres", "kafka", "debezium"])
    shutil.copytree(postgres_home(), folder / "postgres", symlinks=True)
    shutil.copytree(plugin_folder(), folder / "plugins")
    (folder / "kafka").mkdir()
    for jar in kafka_jars():
        shutil.copy(jar, folder / "kafka")


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
