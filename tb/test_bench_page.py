"""The bench: page and README beside the figures that are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from PIL import Image

from hotline.fpga.flow import Report
from hotline.gen.presets import preset
from hotline.host.bench import SECTIONS
from hotline.host.bench_page import page, read_clocks, read_results, readme_table
from hotline.host.bench_plots import PLOTS, source_of
from hotline.host.bench_tables import reaches

ECP5 = preset("ecp5")
ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "bench"


def test_page_is_in_step_with_the_figures() -> None:
    results = read_results(FIGURES)
    text = page(results, "bench", read_clocks(FIGURES))
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == text
    for result in results:
        assert not result["quick"]
        for section in PLOTS:
            if result[section]:
                with Image.open(FIGURES / f"{result['file']}-{section}.png") as picture:
                    assert picture.text["Source"] == source_of(result[section]), section


def test_clocks_of_blocks(tmp_path: Path) -> None:
    (tmp_path / "synth").mkdir()
    for name, luts in (("small", 1000), ("whole", 20000)):
        report = Report({"LUT4": luts, "FF": 500}, {1: 101.0, 2: 99.04, 3: 100.26})
        text = json.dumps({"name": name, **report.as_dict()})
        (tmp_path / "synth" / f"{name}.json").write_text(text, encoding="utf-8")
    text = page(read_results(FIGURES), "bench", read_clocks(tmp_path))
    assert text.endswith(
        "| block | LUT4 | FF | MHz (median) | MHz by seed |\n|---|--:|--:|--:|--:|\n"
        "| whole | 20,000 | 500 | 100.3 | 101.0, 99.0, 100.3 |\n"
        "| small | 1,000 | 500 | 100.3 | 101.0, 99.0, 100.3 |\n"
    )
    assert "Place and route" not in page(read_results(FIGURES), "bench")


def test_readme_is_in_step_with_the_figures() -> None:
    result = json.loads((FIGURES / "ecp5.json").read_text(encoding="utf-8"))
    table = readme_table(result)
    assert table.count("\n") >= 8
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")


def test_figures_are_whole() -> None:
    """Every part was measured, and says what it was measured on."""
    result = json.loads((FIGURES / "ecp5.json").read_text(encoding="utf-8"))
    assert all(result[section] for section in SECTIONS)
    assert set(result["configuration"]) == set(asdict(ECP5))
    assert {"paper"} <= set(result["clocks"])
    assert {log["name"] for log in result["logs"]} == {
        "ml-100k",
        "criteo:criteo_8k.tsv",
        "synthetic:K",
    }
    aimed = [line for line in result["lines"] if reaches(line) is not None]
    assert len(aimed) >= 20
