//! Blocks of a case file: lines between blank ones, tables in them, escapes.

pub(super) type Block = Vec<String>;

/// Returns the blocks of a file, without comments.
pub(super) fn blocks(text: &str) -> impl Iterator<Item = Block> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let blocks: Vec<Block> = lines
        .split(|line| line.trim().is_empty())
        .filter(|block| !block.is_empty())
        .map(|block| block.iter().map(|line| (*line).to_owned()).collect())
        .collect();
    blocks.into_iter()
}

/// One row of a table, as names and values; a block without a table has one empty row.
#[derive(Default)]
pub(super) struct Row(Vec<(String, String)>);

/// Returns the rows of the table in a block, or one empty row.
///
/// # Errors
/// A message, when the number of values in a row differs from the number of names.
pub(super) fn rows(block: &Block) -> Result<Vec<Row>, String> {
    let mut lines = block.iter().filter_map(|line| line.strip_prefix("+ "));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let Some(names) = lines.next().map(cells) else {
        return Ok(vec![Row::default()]);
    };
    let row = |line| {
        let values = cells(line);
        if values.len() != names.len() {
            return Err(format!(
                "{} values in a table of {} columns",
                values.len(),
                names.len()
            ));
        }
        Ok(Row(names.iter().cloned().zip(values).collect()))
    };
    lines.map(row).collect()
}

impl Row {
    /// Returns the block with this row's values inserted and its table kept.
    pub(super) fn fill(&self, block: &Block) -> Block {
        if self.0.is_empty() {
            return block.clone();
        }
        let filled = block.iter().map(|line| {
            self.0.iter().fold(line.clone(), |line, (name, value)| {
                line.replace(&format!("{{{name}}}"), value)
            })
        });
        let split = filled.flat_map(|line| match line.starts_with("+ ") {
            true => vec![line],
            false => line.split(" && ").map(str::to_owned).collect(),
        });
        split.filter(|line| !line.trim().is_empty()).collect()
    }
}

/// Replaces the escapes in a string.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let known = [
            ('r', '\r'),
            ('n', '\n'),
            ('t', '\t'),
            ('0', '\0'),
            ('s', ' '),
            ('\\', '\\'),
        ];
        let found = known.into_iter().find(|(name, _)| after.starts_with(*name));
        out.push(found.map_or('\\', |(_, stands_for)| stands_for));
        rest = if found.is_some() { &after[1..] } else { after };
    }
    out.push_str(rest);
    out
}
