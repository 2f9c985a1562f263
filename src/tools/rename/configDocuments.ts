/** @file Names of fields and classes in YAML and JSON files: config files, and documents that toJSON and toYAML wrote. */
import { isMap, isScalar, isSeq, type Pair, parseDocument, type Scalar, visit } from 'yaml';
import { configRoots } from '../../registry/configs.js';
import type { ClassEntry, Classes } from './classes.js';
import type { ExperimentPaths } from './flagTexts.js';
import { type Known, type Step, stepsAt, type Walker } from './pathText.js';
import type { ts } from './sources.js';

/** A key that names a field, or a text that names a class; the position is the file's. */
export interface DocumentName {
  readonly kind: 'field' | 'class';
  readonly start: number;
  readonly end: number;
  readonly name: string;
  /** What a field may mean by the types that are known; none where nothing is. */
  readonly declarations: readonly ts.Declaration[];
}

const marks = new Set(['$class', '$kind', '$tags']);

/** Reads the names in documents. */
export class DocumentReader {
  private readonly found: DocumentName[] = [];
  private text = '';

  constructor(
    private readonly classes: Classes,
    private readonly walker: Walker,
    private readonly paths: ExperimentPaths,
    /** Whether a file is given to --config_file somewhere. */
    private readonly isConfigFile: (file: string) => boolean,
  ) {}

  /** The names in a file; none in one that is no config file, and no document. */
  read(file: string, text: string): DocumentName[] {
    this.found.length = 0;
    this.text = text;
    const document = parseDocument(text, { keepSourceTokens: true, logLevel: 'silent' });
    if (document.errors.length > 0) return [];
    const { contents } = document;
    if (!isMap(contents)) return [];
    const inner = this.documentIn(contents);
    if (inner !== undefined) this.wholeDocument(inner);
    else if (contents.has('$class')) this.inPlace(contents);
    else if (this.isOverrides(contents) || this.isConfigFile(file)) this.overrides(contents);
    else return [];
    return [...this.found];
  }

  /** The record with `format: luthier-config`: the file's own, or the one that experiment.json has inside. */
  private documentIn(record: unknown): unknown {
    if (!isMap(record)) return undefined;
    return record.get('format') === 'luthier-config' ? record : this.documentIn(record.get('config', true));
  }

  private isOverrides(record: { items: readonly Pair[] }): boolean {
    return record.items.some(({ key }) => {
      const first = isScalar(key) ? stepsAt(String(key.value))?.steps[0]?.name : undefined;
      return first === 'constants' || (configRoots as readonly unknown[]).includes(first);
    });
  }

  private wholeDocument(document: unknown): void {
    visit(document as never, {
      Map: (_, record) => {
        const name = record.get('class', true);
        const values = record.get('values', true);
        if (isScalar(name) && isMap(values)) {
          this.className(name);
          this.record(values, this.fieldsNamed(String(name.value)));
        }
        if (record.has('$class')) this.inPlace(record);
      },
    });
  }

  private overrides(record: { items: readonly Pair[] }): void {
    const experiments = this.paths.all;
    for (const { key, value } of record.items) {
      if (!isScalar(key)) continue;
      if (key.value === 'constants' && isMap(value)) this.overrides(value);
      else {
        const known = this.key(key, (steps) => {
          const meaning = this.paths.meaning(steps, experiments);
          const last = steps.at(-1)!.name;
          const isConfig = (configRoots as readonly unknown[]).includes(steps[0]!.name);
          if (!isConfig) return { meaning, known: undefined };
          if (steps.length === 1) return { meaning, known: this.walker.rootsOf(experiments, String(last)) };
          let at = this.walker.rootsOf(experiments, String(steps[0]!.name));
          for (const step of steps.slice(1)) at = this.walker.into(at, step.name).known;
          return { meaning, known: at };
        });
        this.value(value, known);
      }
    }
  }

  /** A config written with `$class` and its fields. */
  private inPlace(record: { items: readonly Pair[] }): void {
    const name = record.items.find(({ key }) => isScalar(key) && key.value === '$class')?.value;
    if (!isScalar(name)) return;
    this.className(name);
    this.record(record, this.fieldsNamed(String(name.value)));
  }

  private record(record: { items: readonly Pair[] }, owner: Known): void {
    for (const { key, value } of record.items) {
      if (!isScalar(key) || marks.has(String(key.value))) continue;
      const known = this.key(key, (steps) => {
        let at = owner;
        const meaning = steps.map((step) => {
          const next = this.walker.into(at, step.name);
          at = next.known;
          return { step, declarations: next.declarations };
        });
        return { meaning, known: at };
      });
      this.value(value, known);
    }
  }

  private value(value: unknown, known: Known): void {
    if (isSeq(value)) {
      for (const item of value.items) this.value(item, this.walker.into(known, 0).known);
    } else if (isMap(value)) {
      if (value.has('$class')) this.inPlace(value);
      else this.record(value, known);
    }
  }

  /** Notes the fields that a key names, and gives what stands there. */
  private key(
    key: Scalar,
    read: (steps: readonly Step[]) => {
      meaning: readonly { step: Step; declarations: readonly ts.Declaration[] }[];
      known: Known;
    },
  ): Known {
    const [from, to] = key.range!;
    const source = this.text.slice(from, to);
    const parsed = stepsAt(source, /^["']/.test(source) ? 1 : 0);
    if (parsed === undefined) return undefined;
    const { meaning, known } = read(parsed.steps);
    for (const { step, declarations } of meaning) {
      const position = { start: from + step.start, end: from + step.end };
      this.found.push({ kind: 'field', ...position, name: String(step.name), declarations });
    }
    return known;
  }

  private className(scalar: Scalar): void {
    const [from, to] = scalar.range!;
    const name = String(scalar.value);
    const start = from + this.text.slice(from, to).indexOf(name);
    this.found.push({ kind: 'class', start, end: start + name.length, name, declarations: [] });
  }

  private fieldsNamed(name: string): ts.Type[] {
    const named = this.classes.all.filter(
      (entry: ClassEntry) => entry.name === name && entry.kind !== 'experiment',
    );
    return named.flatMap((entry) => this.walker.fieldsOf(entry));
  }
}
