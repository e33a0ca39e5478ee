"""Write the rows of a benchmark to a CSV file. This module imports no fairseq, which takes seconds."""

import csv
from pathlib import Path
from typing import Dict, List


def write_rows(path: Path, rows: List[Dict[str, object]], columns: List[str]) -> None:
    """Append rows to a CSV file; a new file gets a header. A column that a row does not have is empty."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if new:
            writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
