/** @file Paths in --set, --unset and --sweep, in scripts, workflows, package.json and pages. */
import { configRoots } from '../../registry/configs.js';
import type { ClassEntry, Classes } from './classes.js';
import type { Edits } from './edits.js';
import { commandAt, experimentOf, experimentsNamed } from './experiments.js';
import type { FieldUses } from './fieldUses.js';
import type { Looks } from './look.js';
import { type Known, type Step, stepsAt, type Walker } from './pathText.js';
import type { ts } from './sources.js';

const flag = /--(set|unset|sweep)(?:=|[ \t]+)\\?["'`]?/g;

/** Where the steps of a path lead; for each the declarations that it may mean. */
export type Meaning = readonly { readonly step: Step; readonly declarations: readonly ts.Declaration[] }[];

/** Tells where paths into experiments lead. */
export class ExperimentPaths {
  constructor(
    private readonly classes: Classes,
    private readonly walker: Walker,
  ) {}

  /** What the steps of a path mean, that begins at the constants and configs of experiments. */
  meaning(steps: readonly Step[], experiments: readonly ClassEntry[]): Meaning {
    const [first] = steps;
    const isConfig = (configRoots as readonly unknown[]).includes(first?.name);
    if (!isConfig) {
      const name = String(first!.name);
      const declarations = experiments.flatMap((entry) => this.classes.declarations(entry, name));
      return steps.map((step, i) => ({ step, declarations: i === 0 ? declarations : [] }));
    }
    let known: Known = this.walker.rootsOf(experiments, String(first!.name));
    return steps.map((step, i) => {
      if (i === 0) return { step, declarations: [] };
      const next = this.walker.into(known, step.name);
      known = next.known;
      return { step, declarations: next.declarations };
    });
  }

  /**
   * The experiments that a path in a command of a file may begin at: the one that is named, or any. Undefined for a
   * constant of one that is not there; what methods return is alike in all.
   */
  about(command: string, file: string, steps: readonly Step[]): readonly ClassEntry[] | undefined {
    const name = experimentOf(command);
    const named = name === undefined ? [] : experimentsNamed(this.classes, name, file);
    if (named.length > 0) return named;
    const isConfig = (configRoots as readonly unknown[]).includes(steps[0]?.name);
    return name === undefined || isConfig ? this.all : undefined;
  }

  /** All experiments. */
  get all(): readonly ClassEntry[] {
    return this.classes.all.filter(({ kind }) => kind === 'experiment');
  }
}

/** Renames a field in the flags of one text. */
export function renameInFlags(
  file: string,
  text: string,
  {
    paths,
    uses,
    name,
    newName,
    edits,
    looks,
  }: {
    paths: ExperimentPaths;
    uses: FieldUses;
    name: string;
    newName: string;
    edits: Edits;
    looks: Looks;
  },
): void {
  for (const match of text.matchAll(flag)) {
    const found = stepsAt(text, match.index + match[0].length);
    const mentioned = found?.steps.filter((step) => step.name === name) ?? [];
    if (found === undefined || mentioned.length === 0) continue;
    // `name(…)` is a function that makes a sweep.
    if (match[1] === 'sweep' && text[found.end] === '(') continue;
    const experiments = paths.about(commandAt(text, match.index), file, found.steps);
    if (experiments === undefined) {
      looks.at(file, match.index, 'a flag of an experiment that is not in the project');
      continue;
    }
    for (const { step, declarations } of paths.meaning(found.steps, experiments)) {
      if (step.name !== name) continue;
      const verdict = uses.verdict(declarations);
      if (verdict === 'ours') edits.add(file, { start: step.start, end: step.end, text: newName });
      else if (verdict !== 'other') looks.at(file, step.start, 'it is not known whose field this flag sets');
    }
  }
}
