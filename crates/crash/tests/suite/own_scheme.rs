//! A scheme that does not come with the project is tested like the project's own schemes.

use flashatlas_crash::{CrashError, CrashSpec, run};
use flashatlas_ftl::SchemeDef;
use flashatlas_host::STANDARD;

#[test]
fn an_added_scheme_is_cut_at_every_failure() {
    let like = STANDARD.ftl.scheme("fast").unwrap();
    let mine = Box::leak(Box::new(SchemeDef {
        name: "mine",
        summary: "as FAST",
        paper: "none",
        params: like.params,
        fits: like.fits,
        rebuild: like.rebuild,
        on_flash: like.on_flash,
        mount_limit: like.mount_limit,
        steady: like.steady,
        small: like.small,
        mechanisms: like.mechanisms,
    }));
    let registry = STANDARD.with(&*mine).unwrap();
    let failures = |registry, scheme: &str| {
        let plan = CrashSpec { schemes: vec![scheme.into()], one_in: 20, ..CrashSpec::default() };
        let report = run(registry, &plan, &mut |_, _| true)?;
        assert!(report.found.is_empty(), "{} failures found", report.found.len());
        let rows = || report.rows.iter();
        Ok::<(u64, u64), CrashError>((
            rows().map(|row| row.workloads).sum(),
            rows().map(|row| row.cuts).sum(),
        ))
    };
    let (workloads, cuts) = failures(&registry, "mine").unwrap();
    assert!(cuts > 1000, "{cuts} power failures");
    // the sample of failures depends on the scheme's name, but the number of workloads does not
    assert_eq!(workloads, failures(&STANDARD, "fast").unwrap().0);
    assert!(failures(&STANDARD, "mine").unwrap_err().to_string().contains("`mine`"));
}
