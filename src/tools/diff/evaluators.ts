/** @file The evaluating process of one version, started with the library of that version. */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Override } from '../../cli/index.js';
import { UsageError } from '../../registry/usageError.js';
import { Child, ChildError } from '../child.js';
import {
  type AnalysisDocument,
  type Answer,
  type ExperimentDocument,
  type FingerprintDocument,
  protocolVersion,
  type Question,
} from './protocol.js';
import { type Tree, tidiedAnalysis, tidiedDocument } from './versionTree.js';

const folder = 'src/tools/diff';
/** The evaluator's files; they import nothing that earlier versions of the library lack. */
const files = [
  'protocol.ts',
  'configDocument.ts',
  'experimentFingerprints.ts',
  'decodingFingerprint.ts',
  'digests.ts',
  'inputFingerprint.ts',
  'updateFingerprint.ts',
  'shared.ts',
  'evaluate.ts',
  'evaluateWorker.ts',
  'memoryLimit.ts',
  '../failure.ts',
];

/** What one experiment may take. */
export interface Limits {
  readonly seconds: number;
  /** Of the process that evaluates it. */
  readonly gigabytes: number;
}

/** The process of one version. */
export class Evaluator {
  private child: Child<Question, Answer> | undefined;
  private isFresh = true;

  /**
   * `label` is the version's name in errors; `home` is the user's tree. Another, temporary one may be given an evaluator
   * that it lacks, and what it says of its own place is told of the user's.
   */
  constructor(
    private readonly tree: Tree,
    private readonly label: string,
    private readonly home: Tree,
    private readonly limits: Limits,
  ) {}

  /** Has the process started, so that it is ready when it is asked. @throws UsageError where the version has none. */
  async start(): Promise<void> {
    const { library, root } = this.tree;
    const isOwn = this.tree !== this.home && (library === root || library.startsWith(`${root}/`));
    const first = await this.launch();
    if (first === undefined) return;
    if (isOwn && existsSync(join(library, 'src/cli/index.ts'))) {
      // An early version, or a later one: ours may do, for it uses little of the library.
      mkdirSync(join(library, folder), { recursive: true });
      for (const file of files)
        copyFileSync(fileURLToPath(new URL(file, import.meta.url)), join(library, folder, file));
      const second = await this.launch();
      if (second === undefined) return;
      throw new UsageError(
        `${this.label}: its experiments cannot be evaluated by this version of Luthier. ${second}`,
      );
    }
    throw new UsageError(`${this.label}: there is no Luthier to evaluate its experiments with. ${first}`);
  }

  /** Starts the process; gives the reason where it does not speak as this one does. */
  private async launch(): Promise<string | undefined> {
    const file = join(this.tree.library, folder, 'evaluateWorker.ts');
    if (!existsSync(file)) return `${file} is missing.`;
    const args = [String(this.limits.gigabytes)];
    const child = new Child<Question, Answer>(pathToFileURL(file), { cwd: this.tree.project, args });
    try {
      const answer = await child.receive(60_000);
      if ('ready' in answer && answer.ready === protocolVersion) {
        this.child = child;
        return undefined;
      }
      await child.kill();
      return 'It speaks another version of the protocol.';
    } catch (error) {
      if (!(error instanceof ChildError)) throw error;
      return `${error.message}\n${error.output.trim()}`;
    }
  }

  /** The constants and configs of experiments, in order; `ofBase`: of the nearest base class of each that has some. */
  configs(
    names: readonly string[],
    changes: readonly Override[],
    ofBase?: true,
  ): Promise<Map<string, ExperimentDocument>> {
    const question = { ask: 'configs', changes, ofBase } as const;
    return this.askAll(names, question, (answer, name): ExperimentDocument => {
      if (typeof answer === 'string') return { name, error: { message: answer } };
      return tidiedDocument((answer as { experiment: ExperimentDocument }).experiment, this.home);
    });
  }

  /** What experiments compute and read. */
  fingerprints(
    names: readonly string[],
    changes: readonly Override[],
  ): Promise<Map<string, FingerprintDocument>> {
    return this.askAll(names, { ask: 'fingerprint', changes }, (answer, name): FingerprintDocument => {
      if (typeof answer === 'string') return { name, notFingerprinted: answer };
      return (answer as { fingerprint: FingerprintDocument }).fingerprint;
    });
  }

  /** What the models of experiments are; `ofBase` as of configs. */
  analyses(
    names: readonly string[],
    changes: readonly Override[],
    ofBase?: true,
  ): Promise<Map<string, AnalysisDocument>> {
    const question = { ask: 'analysis', changes, ofBase } as const;
    return this.askAll(names, question, (answer, name): AnalysisDocument => {
      if (typeof answer === 'string') return { name, notAnalysed: { message: answer } };
      return tidiedAnalysis((answer as { analysis: AnalysisDocument }).analysis, this.home);
    });
  }

  private async askAll<D>(
    names: readonly string[],
    question: Omit<Question, 'name'>,
    document: (answer: Answer | string, name: string) => D,
  ): Promise<Map<string, D>> {
    const documents = new Map<string, D>();
    const sendFrom = (first: number) => {
      for (const name of names.slice(first)) this.child!.send({ ...question, name });
    };
    sendFrom(0);
    // A process may end over what earlier experiments left behind; a fresh one tells whose fault it is.
    let isFresh = this.isFresh;
    for (let i = 0; i < names.length; ) {
      const name = names[i]!;
      try {
        const answer = await this.child!.receive(this.limits.seconds * 1000);
        documents.set(name, document(this.mapped(answer), name));
        isFresh = false;
        i += 1;
      } catch (error) {
        if (!(error instanceof ChildError)) throw error;
        if (isFresh || error.reason === 'timeout') {
          documents.set(name, document(this.toldOf(error), name));
          i += 1;
        }
        await this.start();
        isFresh = true;
        sendFrom(i);
      }
    }
    this.isFresh = isFresh;
    return documents;
  }

  /** What the experiment's own code did to the process. */
  private toldOf({ reason, message, output }: ChildError): string {
    const { seconds } = this.limits;
    if (reason === 'timeout')
      return `It took longer than ${seconds} s; luthier diff --timeout=SECONDS gives it more.`;
    return `${message}\n${output.trim()}`.trim();
  }

  /** An answer as it reads in the user's tree. */
  private mapped(answer: Answer): Answer {
    if (this.tree === this.home) return answer;
    return JSON.parse(JSON.stringify(answer).replaceAll(this.tree.root, this.home.root)) as Answer;
  }

  /** Ends the process. */
  async end(): Promise<void> {
    await this.child?.kill();
  }
}
