"""Drives that other simulators describe."""

from __future__ import annotations

from pathlib import Path

import flashatlas
import pytest
from flashatlas import Drive, InputError
from flashatlas.foreign import (
    NoCounterpart,
    drive_file,
    femu,
    job_file,
    mqsim_flows,
    nvmevirt,
    trace_name,
)
from flashatlas.foreign import mqsim as mqsim_
from flashatlas.foreign.keys import Does
from flashatlas.foreign.page import page

LEAVES = {
    "PCIe_Lane_Bandwidth": "1.0",
    "PCIe_Lane_Count": "2",
    "HostInterface_Type": "NVME",
    "IO_Queue_Depth": "64",
    "Data_Cache_Capacity": "65536",
    "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true",
    "CMT_Capacity": "4096",
    "Plane_Allocation_Scheme": "WCDP",
    "Overprovisioning_Ratio": "0.2",
    "GC_Exec_Threshold": "0.05",
    "GC_Block_Selection_Policy": "RGA",
    "Preemptible_GC_Enabled": "true",
    "Dynamic_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Enabled": "false",
    "Flash_Channel_Count": "2",
    "Flash_Channel_Width": "2",
    "Channel_Transfer_Rate": "100",
    "Chip_No_Per_Channel": "1",
    "Flash_Technology": "TLC",
    "CMD_Suspension_Support": "PROGRAM_ERASE",
    "Page_Read_Latency_LSB": "50000",
    "Page_Read_Latency_CSB": "60000",
    "Page_Read_Latency_MSB": "70000",
    "Page_Program_Latency_LSB": "500000",
    "Page_Program_Latency_CSB": "600000",
    "Page_Program_Latency_MSB": "700000",
    "Block_Erase_Latency": "3000000",
    "Block_PE_Cycles_Limit": "1000",
    "Suspend_Erase_Time": "20000",
    "Suspend_Program_Time": "10000",
    "Die_No_Per_Chip": "1",
    "Plane_No_Per_Die": "2",
    "Block_No_Per_Plane": "64",
    "Page_No_Per_Block": "16",
    "Page_Capacity": "4096",
    "Page_Metadat_Capacity": "128",
}

HEADER = """\
/* a comment with #if (BASE_SSD == NOTHING) in it */
#if (BASE_SSD == ZONES)
#define NS_SSD_TYPE_0 SSD_TYPE_ZNS
#elif (BASE_SSD == FAST)
#define NS_SSD_TYPE_0 SSD_TYPE_CONV // one
#define CELL_MODE (CELL_MODE_MLC)
#define NAND_CHANNELS (4)
#define LUNS_PER_NAND_CH (2)
#define PLNS_PER_LUN (1)
#define FLASH_PAGE_SIZE KB(16)
#define ONESHOT_PAGE_SIZE (FLASH_PAGE_SIZE * 2)
#define BLKS_PER_PLN (64)
#define NAND_CHANNEL_BANDWIDTH (800ull) //MB/s
#define PCIE_BANDWIDTH (3360ull) //MB/s
#define NAND_READ_LATENCY_LSB (36013 - 6000)
#define NAND_READ_LATENCY_MSB (36013 + 6000)
#define NAND_PROG_LATENCY (185000)
#define NAND_ERASE_LATENCY (0)
#define FW_READ_LATENCY (3000)
#define MDTS (6)
#define MAX_CH_XFER_SIZE KB(16)
#define OP_AREA_PERCENT (0.25)
#define GLOBAL_WB_SIZE (NAND_CHANNELS * LUNS_PER_NAND_CH * ONESHOT_PAGE_SIZE * 2)
#elif (BASE_SSD == SLOW)
#define NS_SSD_TYPE_0 SSD_TYPE_CONV
#endif
"""


@pytest.fixture
def mqsim(tmp_path):
    """Write an ``ssdconfig.xml`` that differs in some tags, and name it as a drive."""

    def written(**other: str | None) -> str:
        leaves = {tag: text for tag, text in {**LEAVES, **other}.items() if text is not None}
        inside = "".join(f"<{tag}>{text}</{tag}>" for tag, text in leaves.items())
        root = "Execution_Parameter_Set"
        (tmp_path / "ssd.xml").write_text(f"<{root}><Device>{inside}</Device></{root}>")
        return f"mqsim:{tmp_path / 'ssd.xml'}"

    return written


@pytest.fixture
def header(tmp_path):
    (tmp_path / "ssd_config.h").write_text(HEADER)
    return f"nvmevirt:{tmp_path / 'ssd_config.h'}"


def params(drive: str) -> dict[str, object]:
    done = flashatlas.run(drive, workload="uniform:requests=20,size=4KiB", precondition="none")
    return done.record["config"]["params"]


@pytest.mark.filterwarnings("ignore::flashatlas.foreign.NoCounterpart")
def test_mqsims_drive_is_ours(mqsim):
    drive = Drive(mqsim())
    # 2 channels x 2 planes x 64 blocks x 16 pages of 4 KiB; a fifth of them is spare
    assert drive.layout["physical_units"] == 4096 and drive.layout["unit_bytes"] == 4096
    assert drive.layout["logical_units"] == pytest.approx(0.8 * 4096, abs=1)
    found = params(mqsim())
    expected = {
        "drive.allocation": "WCDP",
        "drive.cell": "tlc",
        "ftl.victim": "d-choices",
        "ftl.d": 6,  # log2 of 64
        "ftl.low_water": 2,  # below 3.2 blocks
        "map.store": "dram",
        "timing.suspend": "both",
        "host.queue_depth": 64,
        "nand.endurance": 1000,
    }
    assert {key: found[key] for key in expected} == expected
    assert found["timing.channel_rate"] == 200_000_000 and found["host.link_rate"] == 2_000_000_000
    times = {
        "t_read": 50,
        "t_read_middle": 60,
        "t_read_upper": 70,
        "t_program_upper": 700,
        "t_erase": 3000,
        "t_suspend": 20,
    }
    drive_file = flashatlas.foreign.drive_file(mqsim())
    # MQSim bounds no suspension; our defaults are 16 suspensions, of 1 ms each
    assert found["timing.suspends_max"] == 255 and found["timing.suspended_max"] == "0ps"
    assert "suspends_max" not in flashatlas.foreign.drive_file(mqsim(CMD_Suspension_Support="NONE"))
    for name, us in times.items():
        assert f'\n{name} = "{us * 1000}ns"' in drive_file
    cached = flashatlas.foreign.drive_file(mqsim(Ideal_Mapping_Table="false"))
    assert 'store = "dftl"' in cached and "cache_bytes = 4096" in cached


def test_what_has_no_counterpart_is_said(mqsim, header):
    with pytest.warns(NoCounterpart, match="no counterpart: Data_Cache_DRAM_tCL$"):
        flashatlas.foreign.drive_file(mqsim(Data_Cache_DRAM_tCL="13"))
    with pytest.warns(NoCounterpart, match="no counterpart: gc_thres_pcent$"):
        text = flashatlas.foreign.drive_file("femu:femu,devsz_mb=64,vwc=1,gc_thres_pcent=75")
    assert 'summary = "from FEMU\'s black-box drive; without gc_thres_pcent"' in text
    with pytest.warns(NoCounterpart, match="no counterpart: MAX_CH_XFER_SIZE$"):
        flashatlas.foreign.drive_file(f"{header},capacity=64MiB,model=FAST")


def test_a_key_that_is_not_known_is_refused_with_the_nearest(mqsim, header, tmp_path):
    said = {
        "femu:femu,op_pcnt=28": "femu: `op_pcnt` is not known; did you mean `op_pcent`?",
        mqsim(GC_Exec_Treshold="1"): "`GC_Exec_Treshold` is not known; did you mean `GC_Exec_Thre",
    }
    for name, words in said.items():
        with pytest.raises(InputError) as error:
            drive_file(name)
        assert words in str(error.value)
    changed = HEADER.replace("#define MDTS (6)", "#define NAND_CHANELS (6)")
    (tmp_path / "ssd_config.h").write_text(changed)
    with pytest.raises(InputError, match=r"`NAND_CHANELS` is not known; .* `NAND_CHANNELS`"):
        drive_file(f"{header},capacity=64MiB,model=FAST")
    with pytest.raises(InputError, match=r"`Read_Percent` is not known; .* `Read_Percentage`"):
        job_file(scenario(tmp_path / "workload.xml", {"Read_Percent": "1"}))


CHANGED = {
    "femu_mode": None,  # black-box mode alone is used
    "devsz_mb": "512",
    "op_pcent": "28",
    "gc_policy": "fifo",
    "mapping": "dftl",
    "mapping_cache_mb": "2,mapping=dftl",
    "cell_pages": "2,pgtype_lat=1",
    "gc_thres_pcent_high": "50",
    "nand_cell_type": "3",
}
"""Values that differ from FEMU's defaults, for properties that do not take 7."""


@pytest.mark.filterwarnings("ignore::flashatlas.foreign.NoCounterpart")
def test_each_property_of_femu_does_what_its_class_says():
    """A used property changes the drive; any other does nothing, gives a note, or is an error."""
    plain = drive_file("femu:femu")
    for name, key in femu.KEYS.items():
        description = f"femu:femu,{name}={CHANGED.get(name, '7')}"
        if key.does is Does.REFUSED:
            with pytest.raises(InputError, match=f"femu: {name} = "):
                drive_file(description)
        elif key.does is Does.LEFT_OUT:
            with pytest.warns(NoCounterpart, match=name):
                drive_file(description)
        else:
            assert (drive_file(description) == plain) is (key.does is Does.NOTHING), name


def test_femus_spare_space_policy_and_cache_are_ours():
    drive = Drive("femu:femu,blks_per_pl=64,op_pcent=28")
    # 64 dies x 64 blocks x 256 pages x 4 KiB are 4 GiB; 4 GiB / 1.28 are 3.125 GiB
    assert drive.capacity_bytes == 3125 * 2**30 // 1000
    for theirs, ours in {"fifo": "fifo", "d-choice": "d-choices", "random": "random"}.items():
        assert f'victim = "{ours}"' in drive_file(f"femu:femu,gc_policy={theirs}")
    with pytest.raises(InputError, match=r"did you mean `greedy`.*allowed: greedy"):
        drive_file("femu:femu,gc_policy=gredy")
    # translation pages of 4 KiB with 8 bytes an entry; 4 MB where no size is given
    cached = drive_file("femu:femu,mapping=dftl")
    for line in ('store = "demand"', "cache_bytes = 4194304", "page_bytes = 4096"):
        assert f"\n{line}" in cached
    assert "cache_bytes = 2097152" in drive_file("femu:femu,mapping=dftl,mapping_cache_mb=2")
    with pytest.raises(InputError, match="mapping_cache_mb = 2: FEMU uses it with mapping=dftl"):
        drive_file("femu:femu,mapping_cache_mb=2")
    # thousandths of 200 us (ftl-media.c): 600, 1000, 1400
    levels = drive_file("femu:femu,pgtype_lat=1,cell_pages=3")
    for line in ('t_program = "120000ns"', 't_program_upper = "280000ns"', 'cell = "tlc"'):
        assert f"\n{line}" in levels
    # 500 and 1500 thousandths of 200 us
    levels = drive_file("femu:femu,pgtype_lat=1,cell_pages=4")
    for line in ('t_program = "100000ns"', 't_program_top = "300000ns"', 'cell = "qlc"'):
        assert f"\n{line}" in levels
    with pytest.raises(InputError, match="cell_pages = 5 is out of range; give 1 to 4"):
        drive_file("femu:femu,pgtype_lat=1,cell_pages=5")


def test_femus_types_of_cells_have_the_times_of_its_table():
    """The times of QLC are 1.05 to 1.6 times the times of TLC (``nand.h``)."""
    with pytest.warns(NoCounterpart, match="nand_cell_type's order of pages in a block$"):
        tlc = drive_file("femu:femu,nand_cell_type=3,pg_rd_lat=1")
    for line in ('t_read = "56500ns"', 't_program_upper = "5734000ns"', 't_erase = "3000000ns"'):
        assert tlc.count(f"\n{line}") == 1
    with pytest.warns(NoCounterpart):
        found = params("femu:femu,blks_per_pl=16,devsz_mb=96,nand_cell_type=4")
    assert found["drive.cell"] == "qlc"
    with pytest.warns(NoCounterpart):
        qlc = drive_file("femu:femu,nand_cell_type=4")
    for line in (f't_read_top = "{106_000 * 8 // 5}ns"', f't_read = "{56_500 * 21 // 20}ns"'):
        assert f"\n{line}" in qlc
    assert 'cell = "slc"' in drive_file("femu:femu,nand_cell_type=1")
    with pytest.raises(InputError, match=r"nand_cell_type = '5' is not known"):
        drive_file("femu:femu,nand_cell_type=5")


def test_spare_space_of_femu_has_the_write_amplification_of_its_share():
    """A small drive of the same shape: of 64 blocks a die, 64 / 1.28 are exported.

    A = a / (a + W(-a / exp(a))), where a is the flash divided by the exported part (Desnoyers,
    SYSTOR 2012). A is 2.47 with all spare blocks (a = 1.28). It is 3.8 without six of the 64 blocks
    (a = 1.16): three free ones, two frontiers and the victim. Without op_pcent, A was 1.02.
    """
    drive = "femu:femu,nchs=1,luns_per_ch=2,blks_per_pl=64,op_pcent=28"
    work = "uniform:requests=120000,size=4KiB"
    done = flashatlas.run(drive, workload=work, precondition="steady", mode="untimed")
    assert 2.47 < done.waf < 3.8


def test_mqsims_queue_and_collection_are_ours(mqsim):
    # two settings bound the requests in flight: the smaller one counts
    assert "queue_depth = 16" in drive_file(mqsim(Queue_Fetch_Size="16"))
    assert "queue_depth = 64" in drive_file(mqsim(Queue_Fetch_Size="512"))
    assert 'priority = "map,host_read,host_write,gc,idle"' in drive_file(mqsim())
    assert 'priority = "map,gc,host_read' in drive_file(mqsim(Preemptible_GC_Enabled="false"))
    sata = drive_file(mqsim(HostInterface_Type="SATA", SATA_Processing_Delay="400000"))
    assert 'command_time = "800000ns"' in sata and 'link_rate = "2000MB"' in sata
    for tag, text in {
        "CMT_Sharing_Mode": "EQUAL_PARTITIONING",
        "Transaction_Scheduling_Policy": "FLIN",
    }.items():
        with pytest.raises(InputError, match=f"{tag} = '{text}' is "):
            drive_file(mqsim(**{tag: text}))
    assert "copyback" not in drive_file(mqsim(Use_Copyback_for_GC="false"))
    copies = params(mqsim(Use_Copyback_for_GC="true"))
    assert (copies["ftl.copyback"], copies["ftl.copyback_max"]) == ("same-plane", 255)
    with pytest.raises(InputError, match="Use_Copyback_for_GC = 'yes' is not known"):
        drive_file(mqsim(Use_Copyback_for_GC="yes"))
    with pytest.raises(InputError, match="<Seed> is given twice"):
        path = Path(mqsim(Seed="1").removeprefix("mqsim:"))
        path.write_text(path.read_text().replace("<Seed>", "<Seed>1</Seed><Seed>"))
        drive_file(f"mqsim:{path}")


def test_every_key_of_a_description_is_in_its_table():
    assert set(LEAVES) <= set(mqsim_.KEYS) and set(FLOW) <= set(mqsim_flows.KEYS)
    macros = {line.split()[1] for line in HEADER.splitlines() if line.startswith("#define")}
    assert macros <= set(nvmevirt.KEYS)


def test_the_page_of_keys_is_what_the_tables_say():
    """``python -m flashatlas.foreign.page`` makes the page."""
    made = (Path(__file__).parents[1] / "docs" / "IMPORTERS.md").read_text()
    assert made == page()


def test_femus_drive_is_ours():
    drive = Drive(
        "femu:femu,femu_mode=1,devsz_mb=48,nchs=2,luns_per_ch=2,blks_per_pl=64,pgs_per_blk=64"
    )
    # 4 dies x 64 blocks x 64 pages of 8 sectors: 64 MiB, of which 48 are exported
    assert drive.layout["physical_units"] == 16384 and drive.capacity_bytes == 48 << 20
    found = params(drive)
    assert found["cache.mode"] == "write-through" and found["ftl.low_water"] == 3
    slow = params("femu:femu,devsz_mb=1024,ch_xfer_lat=4096,pg_rd_lat=1000")
    assert slow["timing.channel_rate"] == 1_000_000_000


@pytest.mark.filterwarnings("ignore::flashatlas.foreign.NoCounterpart")
def test_nvmevirts_drive_is_ours(header):
    drive = Drive(f"{header},capacity=64MiB,model=FAST")
    # 8 dies of 64 blocks, a page of 32 KiB: 4 pages make 64 MiB; a fifth of them is spare
    assert (drive.dies, drive.layout["physical_units"]) == (8, (64 << 20) // 4096)
    assert drive.over_provisioning == pytest.approx(0.25, abs=1e-3)
    text = flashatlas.foreign.drive_file(f"{header},capacity=64MiB,model=FAST")
    for line in ('t_read = "30013ns"', 't_read_middle = "42013ns"', "bytes = 524288"):
        assert f"\n{line}" in text
    # a program of two flash pages of 16 KiB writes both bits of a word line
    for line in ('program_unit = "word-line"', "page_bytes = 16384", "pages = 8"):
        assert f"\n{line}" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Flash_Channel_Count": None}, "<Flash_Channel_Count> is missing"),
        (
            {"Flash_Channel_Count": "two"},
            "Flash_Channel_Count = 'two' is not a number of at least 1",
        ),
        ({"Block_No_Per_Plane": "0"}, "Block_No_Per_Plane = '0' is not a number of at least 1"),
        (
            {"Address_Mapping": "HYBRID"},
            "Address_Mapping = 'HYBRID' is not possible; give PAGE_LEVEL: M",
        ),
        ({"GC_Block_Selection_Policy": "RANDOM_PP"}, "(allowed: GREEDY, RGA, RANDOM"),
        ({"Overprovisioning_Ratio": "1.5"}, "is not a share below 1"),
        ({"Overprovisioning_Ratio": "nan"}, "Overprovisioning_Ratio = 'nan' is not a number"),
    ],
)
def test_what_makes_no_drive_is_refused(mqsim, change, said):
    with pytest.raises(InputError) as error:
        Drive(mqsim(**change))
    assert said in str(error.value) and "ssd.xml" in str(error.value)


def test_other_texts_are_refused(tmp_path, header):
    (tmp_path / "job.xml").write_text("<MQSim_IO_Scenarios/>")
    (tmp_path / "no.xml").write_text("<a>")
    (tmp_path / "empty.h").write_text("")
    bad = {
        "mqsim:": "no file is named",
        f"mqsim:{tmp_path / 'gone.xml'}": "No such file",
        f"mqsim:{tmp_path / 'no.xml'}": "the file must be XML of MQSim",
        f"mqsim:{tmp_path / 'job.xml'}": "<MQSim_IO_Scenarios> instead of",
        "femu:nvme,devsz_mb=1": "write the text of QEMU's -device",
        "femu:femu,devsz_mb": "'devsz_mb' has no `=`; write PROPERTY=VALUE",
        "femu:femu,nchs=x": "nchs = 'x' is not a number of at least 1",
        "femu:femu,femu_mode=3": "femu_mode = '3' is not possible; give 1: black-box mode",
        "femu:femu,nchs=1,nchs=2": "nchs is given twice",
        header: "add the memory that the module gets",
        f"{header},capacity=1GiB": "no model is named: add ,model= and one of FAST, SLOW",
        f"{header},capacity=1GiB,model=ZONES": "model=ZONES is not a conventional",
        f"{header},capacity=1GiB,model=SLOW": "SLOW has no CELL_MODE",
        f"{header},size=1": "`size` is not known; write capacity= or model=",
        f"nvmevirt:{tmp_path / 'empty.h'},capacity=1GiB": "give NVMeVirt's ssd_config.h",
    }
    for name, said in bad.items():
        with pytest.raises(InputError) as error:
            Drive(name)
        assert said in str(error.value), name


def test_a_command_says_what_is_left_and_its_run_repeats(cli, mqsim):
    other = {"Data_Cache_DRAM_tCL": "13"}
    name = mqsim(**other)
    done = cli(
        "run", "-d", name, "-w", "uniform:requests=300,size=4KiB", "-q", "--json", "run.json"
    )
    assert done.returncode == 0 and "no counterpart: Data_Cache_DRAM_tCL" in done.stderr
    shown = cli("drives", name)
    assert shown.stdout.startswith("[drive]\nsummary = \"from MQSim's ssd.xml; without Data_")
    # the record has every number: the present content of the file does not matter
    mqsim(Page_Read_Latency_LSB="1", **other)
    again = cli("rerun", "run.json", "--check", "-q")
    assert again.returncode == 0, again.stderr


FLOW = {
    "Priority_Class": "HIGH",
    "Channel_IDs": "0,1",
    "Chip_IDs": "0",
    "Die_IDs": "0",
    "Plane_IDs": "0,1",
    "Initial_Occupancy_Percentage": "75",
    "Working_Set_Percentage": "80",
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Read_Percentage": "30",
    "Address_Distribution": "RANDOM_HOTCOLD",
    "Percentage_of_Hot_Region": "20",
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": "16",
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": "8",
    "Variance_Request_Size": "0",
    "Seed": "798",
    "Average_No_of_Reqs_in_Queue": "4",
    "Bandwidth": "4096000",
    "Stop_Time": "0",
    "Total_Requests_To_Generate": "4000",
}


def scenario(path, *flows: dict[str, str], kind: str = "Synthetic") -> str:
    """Write a workload.xml with one scenario; return its name."""
    leaves = [
        "".join(f"<{tag}>{text}</{tag}>" for tag, text in {**FLOW, **flow}.items())
        for flow in flows
    ]
    tag = f"IO_Flow_Parameter_Set_{kind}"
    inside = "".join(f"<{tag}>{flow}</{tag}>" for flow in leaves)
    path.write_text(f"<MQSim_IO_Scenarios><IO_Scenario>{inside}</IO_Scenario></MQSim_IO_Scenarios>")
    return f"mqsim:{path}"


def test_the_flows_of_mqsim_are_jobs(tmp_path):
    """Two flows: each has half of the drive, and 80 % of that as its working set."""
    streaming = {"Address_Distribution": "STREAMING", "Read_Percentage": "0", "Seed": "5"}
    made = job_file(scenario(tmp_path / "workload.xml", {}, streaming))
    (tmp_path / "flows.fio").write_text(made.text)
    lines = made.text.split("[flow2]")
    assert "size=40%" in lines[0] and "offset" not in lines[0]
    assert "offset=50%" in lines[1] and "rw=write" in lines[1]
    result = flashatlas.run(
        "tiny", job=tmp_path / "flows.fio", set=["map.unit=2KiB"], precondition="fill"
    )
    first, second = result.jobs["jobs"]
    assert first["read"]["ios"] + first["write"]["ios"] == 4000
    assert second["write"]["ios"] == 4000 and second["read"]["ios"] == 0
    # 30 % of 4,000 requests are reads, with a standard deviation of 29
    assert abs(first["read"]["ios"] - 1200) < 150


def test_a_hot_region_gets_the_rest_of_the_requests(tmp_path):
    """MQSim sends (100 - H) % of the requests to the first H % of the working set."""
    made = job_file(scenario(tmp_path / "workload.xml", {}))
    assert "random_distribution=zoned:80/20:20/80" in made.text
    assert "blockalign=8192" in made.text and "bs=4096" in made.text


def test_bandwidth_and_time_are_rate_and_runtime(tmp_path):
    paced = {"Synthetic_Generator_Type": "BANDWIDTH", "Stop_Time": "2500000001"}
    made = job_file(scenario(tmp_path / "workload.xml", paced))
    # 4,096,000 bytes a second of 4,096 bytes each
    assert "rate_process=poisson" in made.text
    assert "rate_iops=1000" in made.text and "runtime=2500001us" in made.text
    assert any("exponential" in one for one in made.left)


def test_what_of_a_workload_cannot_be_is_said(cli, tmp_path):
    path = tmp_path / "workload.xml"

    def said(*flows: dict[str, str], option: str = "", **more: str) -> str:
        with pytest.raises(InputError) as error:
            job_file(scenario(path, *flows, **more) + option)
        return str(error.value)

    assert "scenario 1, flow 2: Read_Percentage = 101" in said({}, {"Read_Percentage": "101"})
    assert "'ZIPF' is not known (allowed: STREAMING" in said({"Address_Distribution": "ZIPF"})
    assert "there is no scenario 2: the file has 1" in said({}, option=",scenario=2")
    assert "'GAMMA' is not known" in said({"Request_Size_Distribution": "GAMMA"})
    path.write_text("<Execution_Parameter_Set/>")
    done = cli("job", "mqsim:workload.xml")
    assert done.returncode == 2 and "instead of MQSim's <MQSim_IO_Scenarios>" in done.stderr
    assert "give mqsim:FILE" in cli("job", "workload.xml").stderr
    scenario(path, {})
    done = cli("job", "mqsim:workload.xml", "--to", "job.fio")
    assert done.returncode == 0 and "note: without Initial_Occupancy_Percentage" in done.stderr
    assert "[flow1]" in (tmp_path / "job.fio").read_text()


TRACE_FLOW = {
    "Priority_Class": "HIGH",
    "File_Path": "tpcc.trace",
    "Percentage_To_Be_Executed": "50",
    "Relay_Count": "10",
    "Time_Unit": "PICOSECOND",
}


def test_mistakes_in_a_flow_that_plays_a_trace_are_named(tmp_path):
    def made(**other: str) -> str:
        leaves = "".join(f"<{tag}>{text}</{tag}>" for tag, text in {**TRACE_FLOW, **other}.items())
        tag = "IO_Flow_Parameter_Set_Trace_Based"
        scenes = f"<IO_Scenario><{tag}>{leaves}</{tag}></IO_Scenario>"
        (tmp_path / "workload.xml").write_text(f"<MQSim_IO_Scenarios>{scenes}</MQSim_IO_Scenarios>")
        return trace_name(f"mqsim:{tmp_path / 'workload.xml'}")

    def said(**other: str) -> str:
        with pytest.raises(InputError) as error:
            made(**other)
        return str(error.value)

    assert made().startswith("merge:tpcc.trace,at=0.000000%,space=100.000000%,begin=recorded")
    for one in ("requests=50%,", "times=10,gap=0s,", "time=0:ps,"):
        assert one in made()
    assert "requests" not in made(Percentage_To_Be_Executed="100")
    assert r"merge:a\,b.trace," in made(File_Path="a,b.trace")
    assert "`Relay_Cont` is not known; did you mean `Relay_Count`?" in said(Relay_Cont="1")
    assert (
        "Time_Unit = 'SECOND' is not known; did you mean `NANOSECOND`? (allowed: "
        "PICOSECOND" in said(Time_Unit="SECOND")
    )
    assert "is not a percentage" in said(Percentage_To_Be_Executed="500")


def test_the_format_that_stands_for_a_trace_flow_reads_one(tmp_path):
    """Two requests, a nanosecond apart in picoseconds."""
    (tmp_path / "seq.trace").write_text("0 0 0 8 1\n1000 0 8 8 0\n")
    words = "columns:delimiter=space,time=0:ps,device=1,offset=2:sectors,size=3:sectors,op=4"
    trace = flashatlas.Trace(tmp_path / "seq.trace", format=f"{words},read=1,write=0")
    requests = trace.to_arrow().to_pylist()
    assert [one["op"] for one in requests] == ["read", "write"]
