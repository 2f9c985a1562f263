"""Reads trackio's directory, TRACKIO_DIR, as `trackio show` does, and prints the runs of a project as JSON.

The server moves the inbox into the database before it answers; here that is done twice, since it may be interrupted in
between.
"""

import json
import shutil
import sys

from trackio import fragments, utils
from trackio.api import Api
from trackio.sqlite_storage import SQLiteStorage

project = sys.argv[1]
inbox = fragments.local_inbox_dir()
kept = inbox.with_name("kept")
shutil.copytree(inbox, kept)
fragments.import_inbox_dir()
shutil.copytree(kept, inbox, dirs_exist_ok=True)
fragments.import_inbox_dir()

runs = [
    {"name": run.name, "config": run.config, "logs": SQLiteStorage.get_logs(project, run.name, run_id=run.id)}
    for run in Api().runs(project)
]
json.dump({"runs": runs, "left": inbox.exists() and any(inbox.iterdir())}, sys.stdout)
