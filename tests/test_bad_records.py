"""Bad records of one kind, skipped by its name."""

import json


def test_one_kind_of_bad_record_can_be_skipped(cli, tmp_path):
    # two requests of no bytes among three that are good
    good = "0,{},512,w,{}\n"
    (tmp_path / "z.spc").write_text(
        good.format(1, 0) + "0,1,0,w,0\n" + good.format(2, 1) + "0,1,0,w,1\n" + good.format(3, 2)
    )
    refused = cli("run", "--trace", "z.spc")
    assert refused.returncode == 2
    assert "2 such records from here to the end; `--skip-bad zero-length`" in refused.stderr
    done = cli("run", "--trace", "z.spc", "--skip-bad", "zero-length", "--json", "-")
    found = json.loads(done.stdout)["trace"]
    assert (found["requests"], found["skipped_bad"]) == (3, 2), done.stderr
    assert found["skipped_kinds"] == {"zero-length": 2}
    other = cli("run", "--trace", "z.spc", "--skip-bad", "too-far")
    assert other.returncode == 2 and "z.spc:2:5: a length of zero" in other.stderr
    unknown = cli("run", "--trace", "z.spc", "--skip-bad", "zero")
    assert unknown.returncode == 2
    assert "(allowed: a number of records, zero-length, too-long, too-far)" in unknown.stderr
