"""The same table in each format."""

import gzip
import json

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
feather, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("feather", "parquet"))
openpyxl = pytest.importorskip("openpyxl")
CELLS = [1, 2.5, -300.0, None, 40, 7.25]
IDS = [f"p{k}" for k in range(len(CELLS))]
TEXT = "id,x\n" + "".join(f"{name},{'' if cell is None else cell}\n" for name, cell in zip(IDS, CELLS, strict=True))
LINES = "".join(json.dumps({"id": name, "x": cell}) + "\n" for name, cell in zip(IDS, CELLS, strict=True))


def written_csv(path):
    path.write_text(TEXT)


def written_zst(path):
    content = LINES if "jsonl" in path.name else TEXT.replace(",", "\t") if "tsv" in path.name else TEXT
    path.write_bytes(pa.Codec("zstd").compress(content.encode(), asbytes=True))


def written_lines(path):
    path.write_bytes(gzip.compress(LINES.encode()) if path.suffix == ".gz" else LINES.encode())


def arrow():
    return pa.table({"id": IDS, "x": pa.array(CELLS, pa.float64())})


def written_folder(path):
    path.mkdir()
    for start in (0, 2):
        parquet.write_table(arrow().slice(start, 2 if start == 0 else None), path / f"{start}.parquet")


def written_workbook(path, rows=None):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [("id", "x"), *zip(IDS, CELLS, strict=True)] if rows is None else rows:
        sheet.append(row)
    book.save(path)


FORMATS = {
    "t.csv": written_csv,
    "t.csv.zst": written_zst,
    "t.tsv.zst": written_zst,
    "t.jsonl.zst": written_zst,
    "t.jsonl": written_lines,
    "t.ndjson": written_lines,
    "t.jsonl.gz": written_lines,
    "t.parquet": lambda path: parquet.write_table(arrow(), path),
    "folder": written_folder,
    "t.feather": lambda path: feather.write_feather(arrow(), path),
    "t.xlsx": written_workbook,
    "t.npz": lambda path: np.savez(path, id=np.array(IDS), x=np.array(CELLS, dtype=float)),
}
