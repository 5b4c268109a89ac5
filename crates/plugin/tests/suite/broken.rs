//! Tests of plug-ins with one fault each. The error names the fault, the callback and the place.

use crate::build::{self, PATIENCE};
use flashatlas_crash::{CrashSpec, run as crash};
use flashatlas_plugin::load;
use serde_json::{Value, json};

/// Returns the example with one line changed.
fn page_with(good: &str, bad: &str) -> String {
    let text = build::example("page.c");
    assert_eq!(text.matches(good).count(), 1, "{good}");
    text.replace(good, bad)
}

fn spec(set: &[&str]) -> Value {
    json!({ "drive": "tiny", "precondition": "none", "set": set,
        "workload": "uniform:requests=20000,size=2KiB,read=0.3" })
}

/// Returns the error that ends the run of a library.
fn said(text: &str, set: &[&str]) -> String {
    let registry = build::registry(&build::loaded(text));
    let error = build::played(&registry, spec(set)).unwrap_err();
    assert_eq!(error.kind(), "part", "{error}");
    error.to_string()
}

#[test]
fn what_a_firmware_does_to_the_flash_is_named() {
    let program = "done = host->program(host, page, data);";
    let erase = "uint32_t done = host->erase(host, *victim);";
    for (good, bad, expected) in [
        (
            program,
            "done = host->program(host, 0, data);",
            "frame 0 (page 0 of block 0) is programmed, but it is not erased",
        ),
        (program, "done = host->program(host, page ^ 1, data);", "frame 0 of block "),
        (
            program,
            "done = host->program(host, 1000000, data);",
            "`program` of page 1000000 is not possible: the drive has the pages 0 to ",
        ),
        (program, "done = FA_OK;", "is not programmed when the callback returns"),
        (program, "done = 42;", "returned 42 instead of FA_OK"),
        (program, "host->fail(host, \"no more ideas\"); return FA_FAILED;", "no more ideas"),
        (
            program,
            "{ char b; do done = host->read(host, 0, 0, 1, &b); while (done != FA_REFUSED); }",
            "operations and did not end",
        ),
        (
            program,
            "{ uint64_t op = 1u << 30; host->after(host, &op, 1); done = 0; }",
            "`after` names operation 1073741824, which does not exist yet",
        ),
        (
            "ftl->valid[*victim] > 0; page++",
            "ftl->valid[*victim] > 1; page++",
            "the erase of block ",
        ),
        (
            erase,
            "uint32_t done = host->erase(host, 4096);",
            "`erase` of block 4096 is not possible: the drive has the blocks 0 to 127",
        ),
        (
            "*page = ftl->l2p[lpn];",
            "*page = ftl->l2p[lpn ? lpn - 1 : 0];",
            "its newest version is in ",
        ),
        (
            "*page = ftl->l2p[lpn];",
            "*page = 1u << 30;",
            "cannot be in page 1073741824: the drive has the pages 0 to ",
        ),
        (
            "host->fail(host, \"out of memory\");",
            "",
            "the callback returned null: the plug-in gives no reason",
        ),
    ] {
        let bad = page_with(good, bad);
        let bad =
            if expected.contains("null") { bad.replace("if (!there)", "if (there)") } else { bad };
        let said = said(&format!("{bad}\n"), &["ftl.scheme=page-c", "map.unit=2KiB"]);
        assert!(said.starts_with("plug-in page: page-c: `"), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(
            !expected.contains("loses") || said.contains("whose newest version is in page"),
            "{said}"
        );
    }
}

#[test]
fn what_a_firmware_may_do_is_no_error() {
    let good = "done = host->program(host, page, data);";
    let more = "if (done == FA_OK && in->open[HOST].next + 1 < ftl->shape.pages)";
    for bad in [
        // programs the data again, as after its own checkpoint has failed; the last program counts
        "{ in->open[HOST].next++; page++; done = host->program(host, page, data); }",
        // makes a second copy, but continues to use the first copy
        "{ in->open[HOST].next++; host->copy(host, page, page + 1); }",
    ] {
        let text = page_with(good, &format!("{good} {more} {bad}"));
        let registry = build::registry(&build::loaded(&text));
        let mut spec = spec(&["ftl.scheme=page-c", "drive.blocks=96", "drive.logical_pages=300"]);
        spec["workload"] = "uniform:requests=10000,size=2KiB,read=0.1".into();
        let record = build::played(&registry, spec).unwrap_or_else(|e| panic!("{bad}: {e}"));
        assert_eq!(record["oracle"]["violations"], 0);
        assert!(record["waf"].as_f64() > Some(1.4), "{}", record["waf"]);
    }
}

#[test]
fn calls_outside_of_a_call_are_named() {
    let bad = page_with("ftl->shape = *shape;", "ftl->shape = *shape; kept = host;");
    let bad = bad.replace(
        "static uint32_t page_tables(void *of, fa_table *tables, uint32_t count) {",
        "static uint32_t page_tables(void *of, fa_table *tables, uint32_t count) \
         {\nkept->erase(kept, 0);",
    );
    let bad = bad.replace("enum { HOST,", "static const fa_host *kept;\nenum { HOST,");
    let said = said(&bad, &["ftl.scheme=page-c"]);
    assert!(said.contains("`erase` was called outside of every call of the firmware"), "{said}");
}

#[test]
fn a_firmware_that_forgets_is_found_by_the_cuts() {
    // the mount no longer prefers the newest version of a page to older versions
    let bad = page_with("&& spare.sequence > newest[spare.lpn]", "&& newest[spare.lpn] == 0");
    let registry = build::registry(&build::loaded(&bad));
    let plan =
        CrashSpec { schemes: vec!["page-c".into()], minimise: false, ..CrashSpec::default() };
    let report = crash(&registry, &plan, &mut |_, _| true).unwrap();
    let found = &report.found.first().expect("cuts find it").failure;
    assert!(found.starts_with("R1") || found.starts_with("R2"), "{found}");
}

const VICTIM: &str = r#"
#include <flashatlas_plugin.h>
#include <stdlib.h>
static void *create(const fa_value *v, uint32_t blocks, uint32_t slots, uint64_t seed) {
    (void)v; (void)slots; (void)seed; return calloc(blocks, 1);
}
static void closed(void *p, uint32_t b, uint32_t v, fa_moment at) {
    (void)v; (void)at; ((char *)p)[b] = 1;
}
static void removed(void *p, uint32_t b) { ((char *)p)[b] = 0; }
static uint32_t pick(void *p, const fa_candidates *lane) {
    uint32_t best = FA_NO_BLOCK, least = lane->slots;
    for (uint32_t b = 0; b < lane->blocks; b++)
        if (((char *)p)[b] && lane->valid[b] < least) { best = b; least = lane->valid[b]; }
    return best;
}
static const char *fault(void *p) { (void)p; return "I am at a loss"; }
static const fa_victim ops = {.create = create, .destroy = free, .closed = closed,
                              .removed = removed, .pick = pick, .fault = fault};
static const fa_param params[] = {{"ftl.mine", FA_REAL, 0, 1, "0.5", "nothing"}};
static const fa_part parts[] = {{FA_VICTIM, "mine", "emptiest block", "none", params, 1, &ops}};
const fa_plugin *flashatlas_plugin(void) {
    static const fa_plugin plugin = {FA_ABI_VERSION, "lib", "1.0", parts, 1};
    return &plugin;
}
"#;

#[test]
fn a_greedy_policy_in_c_does_what_ours_does() {
    let registry = build::registry(&build::loaded(VICTIM));
    let record = |victim: &str| {
        let mut spec = spec(&[&format!("ftl.victim={victim}")]);
        spec["precondition"] = "fill".into();
        build::played(&registry, spec).unwrap()
    };
    let (mine, own) = (record("mine"), record("greedy"));
    let waf = |r: &Value| r["waf"].as_f64().unwrap();
    assert!(
        (waf(&mine) / waf(&own) - 1.0).abs() < 0.02,
        "ties differ: {} {}",
        waf(&mine),
        waf(&own)
    );
    assert_eq!(mine["config"]["params"]["ftl.mine"], 0.5);
}

#[test]
fn a_policy_that_picks_what_is_not_there_is_named() {
    for (bad, expected) in [
        (
            "return 99999;",
            "victim policy `mine`: picked block 99999 of lane 0, which is not a closed block; the \
             lane has blocks 0 to ",
        ),
        (
            "for (uint32_t b = 0; b < lane->blocks; b++) if (!((char *)p)[b]) return b;",
            "which is not a closed block; block ",
        ),
        ("return FA_FAULT;", "plug-in lib: mine: `pick` at "),
    ] {
        let text = VICTIM.replace("    uint32_t best", &format!("    {bad}\n    uint32_t best"));
        let said = said(&text, &["ftl.victim=mine"]);
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(!bad.contains("FAULT") || said.contains("I am at a loss"), "{said}");
    }
}

#[test]
fn exceptions_of_cpp_are_errors() {
    let text = r#"
#include <flashatlas_plugin.hpp>
#include <stdexcept>
struct Mine {
    Mine(const fa_value *, uint32_t, uint32_t, uint64_t) {}
    void closed(uint32_t, uint32_t, fa_moment) {}
    void invalidated(uint32_t, uint32_t, fa_moment) {}
    void removed(uint32_t) {}
    uint32_t pick(const fa_candidates &) { throw std::out_of_range("no such list"); }
};
struct Ftl {
    Ftl(const fa_host *, const fa_shape &, const fa_value *) {}
    uint32_t locate(const fa_host *, uint32_t) { return FA_NOWHERE; }
    fa_status write(const fa_host *, uint32_t, const void *) { throw 7; }
    fa_status trim(const fa_host *, uint32_t) { return FA_OK; }
    fa_status flush(const fa_host *) { return FA_OK; }
};
static const fa_victim victim = flashatlas::victim<Mine>();
static const fa_ftl ftl = flashatlas::ftl<Ftl>();
static const fa_part parts[] = {{FA_VICTIM, "throws", "s", "p", nullptr, 0, &victim},
                                {FA_FTL, "ftl", "s", "p", nullptr, 0, &ftl}};
static const fa_plugin plugin = {FA_ABI_VERSION, "cpp", "1.0", parts, 2};
extern "C" const fa_plugin *flashatlas_plugin(void) { return &plugin; }
"#;
    let at = build::with("c++", "plugin.cc", text, &["-shared", "-std=c++17"]).unwrap();
    let library = load(at.to_str().unwrap(), &std::fs::read(&at).unwrap(), PATIENCE).unwrap();
    let registry = build::registry(&library);
    let said = |set: &str| build::played(&registry, spec(&[set])).unwrap_err().to_string();
    let first = said("ftl.victim=throws");
    assert!(
        first.contains("plug-in cpp: throws: `pick` at ") && first.contains(": no such list"),
        "{first}"
    );
    assert!(said("ftl.scheme=ftl").contains("an exception that is no std::exception"));
}

#[test]
fn a_library_that_is_none_is_refused() {
    let refused = |text: &str| {
        let at = build::with("cc", "plugin.c", text, &["-shared", "-Wno-unused-function"]).unwrap();
        let at = at.to_str().unwrap();
        load(at, b"", PATIENCE).err().unwrap().to_string().replace(at, "x.so")
    };
    let with = |good: &str, bad: &str| {
        assert!(VICTIM.contains(good), "{good}");
        refused(&VICTIM.replace(good, bad))
    };
    assert!(refused("int nothing;").starts_with(
        "x.so: the library has no symbol `flashatlas_plugin`; build it with flashatlas_plugin.h"
    ));
    assert_eq!(
        with("{FA_ABI_VERSION,", "{7,"),
        "x.so: the library was built with version 7 of flashatlas_plugin.h, but this FlashAtlas \
         has version 1: build the library again with the header of `flashatlas plugin-header`"
    );
    assert_eq!(
        with(".removed = removed,", ""),
        "x.so: plug-in lib: mine: the callback `removed` is null; it must be a function"
    );
    assert_eq!(
        with("\"0.5\"", "\"2\""),
        "x.so: plug-in lib: mine: parameter `ftl.mine`: the fallback is wrong: ftl.mine: 2 is out \
         of range (allowed: 0 to 1)"
    );
    assert!(with("\"ftl.mine\"", "\"mine\"").contains("the key needs a section and a name"));
    assert_eq!(with("parts, 1}", "parts, 0}"), "x.so: the library has no parts");
    let text = std::env::temp_dir().join(format!("flashatlas-no-library-{}", std::process::id()));
    std::fs::write(&text, "text").unwrap();
    let said = load(text.to_str().unwrap(), b"", PATIENCE).err().unwrap().to_string();
    assert!(said.contains("cannot be opened as a shared library"), "{said}");
}

#[test]
fn names_and_keys_of_plug_ins_clash_as_others_do() {
    let library = build::loaded(VICTIM);
    let again = build::registry(&library).with(library.parts[0]).unwrap_err().to_string();
    assert!(again.contains("two entries of the registry are called `mine`"), "{again}");
    let clash = build::loaded(&VICTIM.replace("ftl.mine", "ftl.streams"));
    let said = flashatlas_host::STANDARD.with(clash.parts[0]).unwrap_err().to_string();
    assert!(said.contains("ftl.streams: victim policy `mine` and "), "{said}");
}
