//! Public surface: every public item of the published crates, listed in `surface.txt`.
//!
//! So a change of the surface shows up as a change of `surface.txt`. `FLASHATLAS_WRITE=1 cargo test
//! -p flashatlas --test surface` writes the file anew.
//!
//! The test reads the sources, so the result does not depend on the version of a compiler. An item
//! is public if a path of public modules leads to it, or if a public `use` names it. Fields,
//! variants and methods follow their type. Items that a macro makes are not listed, except the
//! items from the table of options (`crates/sim/src/options/mod.rs`).

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Fields, Ident, ImplItem, Item, ItemStruct, Token, TraitItem, Type, UseTree,
    Visibility, parse_quote,
};

/// Crates that can be used through the facade, the test helpers, and the facade itself.
const CRATES: [&str; 16] = [
    "types",
    "nand",
    "lookup",
    "dram",
    "timing",
    "ftl",
    "lpmt",
    "device",
    "host",
    "workload",
    "fio",
    "sim",
    "crash",
    "fixtures",
    "conformance",
    "flashatlas",
];

/// Surface of one crate.
#[derive(Default)]
struct Surface {
    /// Names that a public `use` exports from private modules, and modules that a `use` exports
    /// whole.
    exported: BTreeSet<String>,
    /// Lines of the surface, by the path of the item.
    lines: BTreeMap<String, Vec<String>>,
    /// Public names of types, whose methods are listed as well.
    types: BTreeSet<String>,
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn has(attributes: &[Attribute], what: &str) -> bool {
    attributes.iter().any(|a| a.to_token_stream().to_string().replace(' ', "").contains(what))
}

/// Returns tokens as one line, spaced as in formatted code.
fn text(tokens: &impl ToTokens) -> String {
    let mut line = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        ("< ", "<"),
        (" ,", ","),
        (" :", ":"),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        (" ;", ";"),
        ("' ", "'"),
        (" ?", "?"),
        ("->", " -> "),
        ("  ", " "),
        ("  ", " "),
        (",)", ")"),
        (",(", ", ("),
        ("(mut ", "("),
        (", mut ", ", "),
        ("{", " {"),
        (", }", " }"),
        (",>", ">"),
    ] {
        line = line.replace(from, to);
    }
    line.trim().to_owned()
}

/// Returns the items of a module, whose files lie in `folder`.
fn items(file: &Path) -> Vec<Item> {
    let source =
        std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let items =
        syn::parse_file(&source).unwrap_or_else(|e| panic!("{}: {e}", file.display())).items;
    let expanded = |item: Item| match item {
        Item::Macro(of) if of.mac.path.segments.last().is_some_and(|s| s.ident == "options") => {
            let table = of.mac.parse_body::<Table>();
            table.unwrap_or_else(|e| panic!("{}: {e}", file.display())).0
        }
        other => vec![other],
    };
    items.into_iter().flat_map(expanded).collect()
}

/// Items of a table of options: its list, and its structs with a field for each row.
struct Table(Vec<Item>);

impl Parse for Table {
    fn parse(input: ParseStream<'_>) -> syn::Result<Table> {
        let mut items = Vec::new();
        while !input.is_empty() {
            input.call(Attribute::parse_outer)?;
            if input.parse::<Option<Token![const]>>()?.is_some() {
                let list: Ident = input.parse()?;
                input.parse::<Token![;]>()?;
                items.push(parse_quote!(pub const #list: &[RunOption] = &[];));
                continue;
            }
            if input.parse::<Option<Token![struct]>>()?.is_some() {
                let name: Ident = input.parse()?;
                items.push(parse_quote!(pub struct #name {}));
            } else {
                // the rows of a group are fields of the struct before the group
                input.parse::<Ident>()?;
                input.parse::<Ident>()?;
            }
            let rows;
            syn::braced!(rows in input);
            let Some(Item::Struct(ItemStruct { fields: Fields::Named(of), .. })) = items.last_mut()
            else {
                return Err(input.error("a group before a struct"));
            };
            while !rows.is_empty() {
                of.named.push(row(&rows)?);
            }
        }
        Ok(Table(items))
    }
}

/// Returns the field of a row such as `name: Type = default => option(…);`.
fn row(rows: ParseStream<'_>) -> syn::Result<syn::Field> {
    rows.call(Attribute::parse_outer)?;
    let name: Ident = rows.parse()?;
    rows.parse::<Token![:]>()?;
    let of: Type = rows.parse()?;
    if rows.parse::<Option<Token![=]>>()?.is_some() {
        rows.parse::<syn::Expr>()?;
        rows.parse::<Token![=>]>()?;
        rows.parse::<syn::Expr>()?;
    }
    rows.parse::<Token![;]>()?;
    Ok(parse_quote!(pub #name: #of))
}

/// Returns the modules of a crate: for each, its path, `true` if it is reachable, and its items.
fn modules(file: &Path, folder: &Path, path: &str, open: bool) -> Vec<(String, bool, Vec<Item>)> {
    let mut all = Vec::new();
    let own = items(file);
    for item in &own {
        let Item::Mod(module) = item else { continue };
        if has(&module.attrs, "cfg(test)") || module.content.is_some() {
            continue;
        }
        let name = module.ident.to_string();
        let open = open && is_public(&module.vis);
        let path = format!("{path}::{name}");
        let (flat, deep) = (folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs"));
        let file: PathBuf = if flat.exists() { flat } else { deep };
        all.extend(modules(&file, &folder.join(&name), &path, open));
    }
    all.insert(0, (path.to_owned(), open, own));
    all
}

/// Collects the names that a `use` imports.
fn named(tree: &UseTree, before: &str, all: &mut Vec<(String, String)>) {
    match tree {
        UseTree::Path(path) => named(&path.tree, &format!("{before}{}::", path.ident), all),
        UseTree::Name(name) => {
            all.push((format!("{before}{}", name.ident), name.ident.to_string()))
        }
        UseTree::Rename(name) => {
            all.push((format!("{before}{}", name.ident), name.ident.to_string()));
        }
        UseTree::Glob(_) => all.push((format!("{before}*"), "*".into())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| named(tree, before, all)),
    }
}

/// Returns the last name of a type's path.
fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            path.path.segments.last().map_or(String::new(), |s| s.ident.to_string())
        }
        other => text(other),
    }
}

impl Surface {
    fn add(&mut self, at: &str, line: String) {
        self.lines.entry(at.to_owned()).or_default().push(line);
    }

    fn fields(&mut self, at: &str, fields: &Fields) {
        for (n, field) in fields.iter().enumerate() {
            if is_public(&field.vis) {
                let name = field.ident.as_ref().map_or(n.to_string(), ToString::to_string);
                self.add(at, format!("    {name}: {}", text(&field.ty)));
            }
        }
    }

    /// Adds an item that has a name, if it is on the surface.
    fn item(&mut self, module: &str, open: bool, item: &Item) {
        let shown =
            |vis: &Visibility, name: &str| is_public(vis) && (open || self.exported.contains(name));
        let growing = |attributes: &[Attribute]| {
            if has(attributes, "non_exhaustive") { "#[non_exhaustive] " } else { "" }
        };
        match item {
            Item::Fn(of) if shown(&of.vis, &of.sig.ident.to_string()) => {
                self.add(&format!("{module}::{}", of.sig.ident), text(&of.sig));
            }
            Item::Const(of) if shown(&of.vis, &of.ident.to_string()) => {
                let at = format!("{module}::{}", of.ident);
                self.add(&at, format!("const {}: {}", of.ident, text(&of.ty)));
            }
            Item::Type(of) if shown(&of.vis, &of.ident.to_string()) => {
                let at = format!("{module}::{}", of.ident);
                self.add(&at, format!("type {} = {}", of.ident, text(&of.ty)));
            }
            Item::Struct(of) if shown(&of.vis, &of.ident.to_string()) => {
                let at = format!("{module}::{}", of.ident);
                let generics = text(&of.generics);
                self.add(&at, format!("{}struct {}{generics}", growing(&of.attrs), of.ident));
                self.fields(&at, &of.fields);
                self.types.insert(of.ident.to_string());
            }
            Item::Enum(of) if shown(&of.vis, &of.ident.to_string()) => {
                let at = format!("{module}::{}", of.ident);
                let generics = text(&of.generics);
                self.add(&at, format!("{}enum {}{generics}", growing(&of.attrs), of.ident));
                for variant in &of.variants {
                    let mut fields = variant.fields.clone();
                    fields.iter_mut().for_each(|field| field.attrs.clear());
                    let fields = text(&fields);
                    self.add(&at, format!("    {}{fields}", variant.ident));
                }
                self.types.insert(of.ident.to_string());
            }
            Item::Trait(of) if shown(&of.vis, &of.ident.to_string()) => {
                let at = format!("{module}::{}", of.ident);
                let (generics, above) = (text(&of.generics), text(&of.supertraits));
                let above = if above.is_empty() { above } else { format!(": {above}") };
                self.add(&at, format!("trait {}{generics}{above}", of.ident));
                for member in &of.items {
                    match member {
                        TraitItem::Fn(f) => {
                            let given = if f.default.is_some() { " { … }" } else { "" };
                            self.add(&at, format!("    {}{given}", text(&f.sig)));
                        }
                        TraitItem::Const(c) => {
                            self.add(&at, format!("    const {}: {}", c.ident, text(&c.ty)));
                        }
                        TraitItem::Type(t) => self.add(&at, format!("    type {}", t.ident)),
                        _ => {}
                    }
                }
                self.types.insert(of.ident.to_string());
            }
            Item::Macro(of) if has(&of.attrs, "macro_export") => {
                let name = of.ident.as_ref().map_or(String::new(), ToString::to_string);
                self.add(&format!("{module}::{name}"), format!("macro {name}!"));
            }
            Item::Use(of) if is_public(&of.vis) && open => {
                let mut all = Vec::new();
                named(&of.tree, "", &mut all);
                for (path, _) in all.into_iter().filter(|(p, _)| p.starts_with("flashatlas")) {
                    self.add(&format!("{module}::{path}"), format!("use {path}"));
                }
            }
            _ => {}
        }
    }

    /// Adds the methods and traits of types that are on the surface.
    fn implementation(&mut self, module: &str, of: &syn::ItemImpl) {
        let name = type_name(&of.self_ty);
        if !self.types.contains(&name) {
            return;
        }
        let at = format!("{module}::{name}");
        if let Some((_, path, _)) = &of.trait_ {
            self.add(&at, format!("    impl {}", text(path)));
            return;
        }
        for member in &of.items {
            match member {
                ImplItem::Fn(f) if is_public(&f.vis) => {
                    self.add(&at, format!("    {}", text(&f.sig)));
                }
                ImplItem::Const(c) if is_public(&c.vis) => {
                    self.add(&at, format!("    const {}: {}", c.ident, text(&c.ty)));
                }
                _ => {}
            }
        }
    }
}

/// Returns the surface of a crate, as text.
fn surface(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let all = modules(&folder.join("lib.rs"), &folder, "", true);
    let mut found = Surface::default();
    let uses = all.iter().flat_map(|(_, _, items)| items).filter_map(|item| match item {
        Item::Use(of) if is_public(&of.vis) => Some(&of.tree),
        _ => None,
    });
    for tree in uses {
        let mut names = Vec::new();
        named(tree, "", &mut names);
        found.exported.extend(names.into_iter().map(|(_, name)| name));
    }
    for (module, open, items) in &all {
        items.iter().for_each(|item| found.item(module, *open, item));
    }
    for (module, _, items) in &all {
        for item in items {
            if let Item::Impl(of) = item
                && !has(&of.attrs, "cfg(test)")
            {
                found.implementation(module, of);
            }
        }
    }
    let title = if name == "flashatlas" { name.into() } else { format!("flashatlas_{name}") };
    let mut out = format!("{title}\n");
    for (path, lines) in found.lines {
        let (module, _) = path.trim_start_matches("::").rsplit_once("::").unwrap_or(("", ""));
        for (n, line) in lines.iter().enumerate() {
            // methods may be in another module than their type
            let at =
                if n == 0 && !module.is_empty() { format!("{module}: ") } else { String::new() };
            writeln!(out, "  {at}{line}").expect("text");
        }
    }
    out
}

#[test]
fn the_surface_is_the_one_that_was_reviewed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface.txt");
    let now: String = CRATES.iter().map(|name| surface(name) + "\n").collect();
    if flashatlas_fixtures::written::is_asked_for() {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    let then = std::fs::read_to_string(&file).unwrap_or_default();
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (then.lines().collect(), now.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}\n"));
    let come: Vec<String> = new.difference(&old).map(|line| format!("+ {line}\n")).collect();
    let differs: String = gone.chain(come).collect();
    assert!(
        then == now,
        "the public surface differs from tests/surface.txt:\n{differs}if that is meant, review it \
         and run: FLASHATLAS_WRITE=1 cargo test --release -p flashatlas --test surface"
    );
}
