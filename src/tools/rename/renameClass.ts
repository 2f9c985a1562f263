/** @file Works out the renaming of a configurable class or an experiment. */
import { basename } from 'node:path';
import { addOldClassName } from './aliases.js';
import { type ClassEntry, Classes } from './classes.js';
import { DocumentReader } from './configDocuments.js';
import { Edits } from './edits.js';
import { experimentName } from './experiments.js';
import { ExperimentPaths } from './flagTexts.js';
import { Looks } from './look.js';
import { escaped, Walker } from './pathText.js';
import { type Plan, planOf } from './plan.js';
import { isSnapshot } from './projectFiles.js';
import { Sources, ts, visitNodes } from './sources.js';
import { checkClassName, classMeant } from './target.js';

/**
 * What renaming a class does to the project in `root`. Nothing is written.
 *
 * @throws UsageError for a class that is not there, is not the only one of its name, or cannot have the new name.
 */
export function planClassRename(
  root: string,
  text: string,
  newName: string,
  options: { alias: boolean },
): Plan {
  const sources = new Sources(root);
  const classes = new Classes(sources);
  const entry = classMeant(sources, classes, text);
  checkClassName(sources, entry, newName);
  const edits = new Edits();
  const looks = new Looks(sources);
  editIdentifiers(sources, entry, newName, edits, looks);
  const isExperiment = entry.kind === 'experiment';
  if (options.alias && !isExperiment) addOldClassName(sources, entry.node, entry.name, newName, edits);
  if (isExperiment) editExperimentNames(sources, entry, newName, edits, looks);
  else editDocuments(sources, classes, entry, newName, edits, looks);
  lookAtStrings(sources, entry, edits, looks);
  return planOf(sources, {
    old: entry.name,
    present: newName,
    name: entry.name,
    edits,
    looks,
    settled: new Set(),
  });
}

function editIdentifiers(
  sources: Sources,
  entry: ClassEntry,
  newName: string,
  edits: Edits,
  looks: Looks,
): void {
  const node = (entry.node as ts.ClassLikeDeclaration).name!;
  const { fileName } = node.getSourceFile();
  const found = sources.service.findRenameLocations(fileName, node.getStart(), false, false, {
    providePrefixAndSuffixTextForRename: false,
  });
  for (const { fileName: file, textSpan } of found ?? []) {
    const source = sources.program.getSourceFile(file)!;
    if (!sources.isOwn(source)) {
      looks.at(file, textSpan.start, 'a file that is not of this project');
      continue;
    }
    const start = textSpan.start;
    edits.add(sources.fileOf(source), { start, end: start + textSpan.length, text: newName });
  }
}

/** `lm.Small` in texts, and `--exp=Small`; strings of TypeScript are texts like others. */
function editExperimentNames(
  sources: Sources,
  entry: ClassEntry,
  newName: string,
  edits: Edits,
  looks: Looks,
): void {
  const whole = experimentName(entry);
  if (whole === undefined) return;
  const stem = escaped(whole.slice(0, -entry.name.length)).replaceAll('.', '\\.');
  const name = escaped(entry.name);
  const inTexts = new RegExp(
    `(?<![\\w$./-])(?<before>(?:${stem})|--exp(?:=|\\s+)\\\\?["']?)${name}(?![\\w$-]|\\.[A-Za-z_]|\\()`,
    'g',
  );
  const edit = (file: string, text: string, offset: number) => {
    for (const match of text.matchAll(inTexts)) {
      const start = offset + match.index + match.groups!.before!.length;
      edits.add(file, { start, end: start + entry.name.length, text: newName });
    }
  };
  for (const [file, text] of sources.texts) {
    if (isSnapshot(file)) {
      if (basename(file).startsWith(`${whole}.`))
        looks.at(file, 0, 'a snapshot of it: write the new one, remove this');
    } else if (!/\.[cm]?[jt]sx?$/.test(file)) edit(file, text, 0);
  }
  for (const source of sources.files) {
    if (sources.isPage(source)) continue;
    visitNodes(source, (node) => {
      const isText = ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node);
      if (isText && node.getText().includes(entry.name))
        edit(source.fileName, node.getText(), node.getStart());
    });
  }
}

function editDocuments(
  sources: Sources,
  classes: Classes,
  entry: ClassEntry,
  newName: string,
  edits: Edits,
  looks: Looks,
): void {
  const walker = new Walker(sources, classes);
  const reader = new DocumentReader(classes, walker, new ExperimentPaths(classes, walker), () => false);
  const value = new RegExp(`--set(?:=|\\s+)\\\\?["']?[\\w.[\\]$]+=(${escaped(entry.name)})(?![\\w$.])`, 'g');
  const isOnly =
    classes.all.filter(({ name, kind }) => name === entry.name && kind !== 'experiment').length === 1;
  for (const [file, text] of sources.texts) {
    if (/\.[cm]?[jt]sx?$/.test(file) || !text.includes(entry.name)) continue;
    const positions = [...text.matchAll(value)].map(
      (match) => match.index + match[0].length - entry.name.length,
    );
    if (/\.(json|ya?ml)$/.test(file)) {
      for (const found of reader.read(file, text)) {
        if (found.kind === 'class' && found.name === entry.name) positions.push(found.start);
      }
    }
    for (const start of positions) {
      if (isOnly) edits.add(file, { start, end: start + entry.name.length, text: newName });
      else looks.at(file, start, `more than one class is called ${entry.name}`);
    }
  }
}

/** Strings that are the name, or say it, mean the class or something else. */
function lookAtStrings(sources: Sources, entry: ClassEntry, edits: Edits, looks: Looks): void {
  for (const source of sources.files) {
    if (!source.text.includes(entry.name) || sources.isPage(source)) continue;
    const own = edits.of(source.fileName);
    visitNodes(source, (node) => {
      if (!ts.isStringLiteralLike(node) || node.text !== entry.name) return;
      const isEdited = own.some(({ start, end }) => node.getStart() <= start && end <= node.getEnd());
      if (!isEdited) looks.atNode(node, 'a text that is the name');
    });
  }
}
