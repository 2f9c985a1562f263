/** @file The evaluating processes of one version, with the library of that version. */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { UsageError } from '../../registry/usageError.js';
import { Child, ChildError } from '../child.js';
import {
  type AnalysisDocument,
  type Answer,
  type Change,
  type ExperimentDocument,
  type FingerprintDocument,
  type Message,
  protocolVersion,
  type Question,
} from './protocol.js';
import { ImportGraph } from './sources.js';
import { type Tree, tidiedAnalysis, tidiedDocument } from './versionTree.js';

const own = fileURLToPath(new URL('../../..', import.meta.url));
const worker = fileURLToPath(new URL(`./evaluateWorker${extname(import.meta.url)}`, import.meta.url));
/** From the library's folder: `src/tools/diff/evaluateWorker.ts` in a clone, `dist/…` where it is installed. */
const entry = relative(own, worker);

/** The evaluator's own files, from the library's folder; they import nothing that earlier versions of it lack. */
function evaluatorFiles(): string[] {
  const loaded = new ImportGraph(own).closureOf(join(own, entry));
  return [...loaded]
    .map((file) => relative(own, file))
    .filter((file) => /^src\/(tools|analysis)\//.test(file));
}

/** What one experiment may take. */
export interface Limits {
  readonly seconds: number;
  /** Of the process that evaluates it. */
  readonly gigabytes: number;
}

/** An answer, or why there is none, and what the process had read when it was given. */
interface Told {
  readonly answer: Answer | string;
  /** Absolute paths, as `recordReads` gives them. */
  readonly reads: readonly string[];
}

/** Of a process that ended: it may have read anything. */
const everything = ['/'];

/** One process after another that answers questions: what ends one is the answer to what it was asked. */
class Answerer {
  private child: Child<Question, Message> | undefined;
  private isFresh = true;
  private reads: string[] = [];

  constructor(
    private readonly tree: Tree,
    private readonly limits: Limits,
  ) {}

  /** Starts the process; gives the reason where it does not speak as this one does. */
  async start(): Promise<string | undefined> {
    const file = join(this.tree.library, entry);
    if (!existsSync(file)) return `${file} is missing.`;
    const args = [String(this.limits.gigabytes)];
    // Traces are many small objects that live a while: copying them too often took a sixth of the time.
    const options = { cwd: this.tree.project, args, flags: ['--max-semi-space-size=128'] };
    const child = new Child<Question, Message>(pathToFileURL(file), options);
    this.isFresh = true;
    this.reads = [];
    try {
      const message = await child.receive(60_000);
      if ('ready' in message && message.ready === protocolVersion) {
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

  async ask(question: Question): Promise<Told> {
    for (;;) {
      const why = this.child === undefined ? await this.start() : undefined;
      if (why !== undefined)
        throw new UsageError(`${this.tree.project}: a new evaluating process does not start. ${why}`);
      const { isFresh } = this;
      try {
        this.child!.send(question);
        const message = await this.child!.receive(this.limits.seconds * 1000);
        const { answer, reads } = message as Exclude<Message, { ready: number }>;
        this.isFresh = false;
        this.reads.push(...reads);
        return { answer, reads: [...this.reads] };
      } catch (error) {
        if (!(error instanceof ChildError)) throw error;
        this.child = undefined;
        // A process may end over what earlier experiments left behind; a fresh one tells whose fault it is.
        if (isFresh || error.reason === 'timeout') return { answer: this.toldOf(error), reads: everything };
      }
    }
  }

  /** What the experiment's own code did to the process. */
  private toldOf({ reason, message, output }: ChildError): string {
    const { seconds } = this.limits;
    if (reason === 'timeout')
      return `It took longer than ${seconds} s; luthier diff --timeout=SECONDS gives it more.`;
    return `${message}\n${output.trim()}`.trim();
  }

  async end(): Promise<void> {
    await this.child?.kill();
  }
}

/** What is asked about. */
interface Asked {
  readonly names: readonly string[];
  readonly changes: readonly Change[];
  /** Whether the nearest base class of each that has configs is meant. */
  readonly ofBase?: true;
  /** How many processes may answer. */
  readonly processes: number;
}

/** The fewest experiments that are worth the start of a process. */
const fewest = 4;

/** The names in so many parts: what experiments that stand side by side have in common is made once. */
function partsOf(names: readonly string[], most: number): string[][] {
  const count = Math.min(most, Math.ceil(names.length / fewest));
  const size = Math.ceil(names.length / count);
  return Array.from({ length: count }, (_, i) => names.slice(i * size, (i + 1) * size));
}

/** The next name of a part; of the longest other one where it is done. */
function nextOf(part: string[], parts: readonly string[][]): string | undefined {
  return part.shift() ?? parts.toSorted((a, b) => b.length - a.length)[0]!.pop();
}

/** The processes of one version, as many as questions are worth. */
export class Evaluator {
  private readonly answerers: Answerer[] = [];
  private started: Promise<void> | undefined;
  private readonly reads = new Map<string, Set<string>>();

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

  /**
   * Has the first process started, so that it is ready when something is asked, which would start it otherwise.
   *
   * @throws UsageError where the version has none.
   */
  start(): Promise<void> {
    this.started ??= this.launch();
    // Whoever asks is told.
    this.started.catch(() => {});
    return this.started;
  }

  private async launch(): Promise<void> {
    const { library, root } = this.tree;
    const isOwn = this.tree !== this.home && (library === root || library.startsWith(`${root}/`));
    const first = new Answerer(this.tree, this.limits);
    this.answerers.push(first);
    const why = await first.start();
    if (why === undefined) return;
    if (isOwn && existsSync(join(library, 'src/cli/index.ts'))) {
      // An early version, or a later one: ours may do, for it uses little of the library.
      for (const file of evaluatorFiles()) {
        mkdirSync(dirname(join(library, file)), { recursive: true });
        copyFileSync(join(own, file), join(library, file));
      }
      const still = await first.start();
      if (still === undefined) return;
      throw new UsageError(
        `${this.label}: its experiments cannot be evaluated by this version of Luthier. ${still}`,
      );
    }
    throw new UsageError(`${this.label}: there is no Luthier to evaluate its experiments with. ${why}`);
  }

  /** The constants and configs of experiments, by at most so many processes. */
  configs(asked: Asked): Promise<Map<string, ExperimentDocument>> {
    return this.askAll(
      'configs',
      asked,
      (answer, name): ExperimentDocument =>
        typeof answer === 'string'
          ? { name, error: { message: answer } }
          : tidiedDocument(answer as ExperimentDocument, this.home),
    );
  }

  /** What experiments compute and read. */
  fingerprints(asked: Asked): Promise<Map<string, FingerprintDocument>> {
    return this.askAll(
      'fingerprint',
      asked,
      (answer, name): FingerprintDocument =>
        typeof answer === 'string' ? { name, notFingerprinted: answer } : (answer as FingerprintDocument),
    );
  }

  /** What the models of experiments are. */
  analyses(asked: Asked): Promise<Map<string, AnalysisDocument>> {
    return this.askAll(
      'analysis',
      asked,
      (answer, name): AnalysisDocument =>
        typeof answer === 'string'
          ? { name, notAnalysed: { message: answer } }
          : tidiedAnalysis(answer as AnalysisDocument, this.home),
    );
  }

  /** Paths that the processes had read when they were done with the experiment, as `recordReads` tells them. */
  readsOf(name: string): ReadonlySet<string> {
    return this.reads.get(name) ?? new Set(everything);
  }

  /** Has experiments made and fingerprinted, one after another, for what is read meanwhile. */
  async look({ names, changes, processes }: Asked): Promise<void> {
    await this.share(names, processes, async (answerer, name) => {
      await this.ask(answerer, { ask: 'configs', name, changes });
      await this.ask(answerer, { ask: 'fingerprint', name, changes });
    });
  }

  private async askAll<D>(
    ask: Question['ask'],
    { names, processes, ...subject }: Asked,
    document: (answer: Answer | string, name: string) => D,
  ): Promise<Map<string, D>> {
    const documents = new Map<string, D>();
    await this.share(names, processes, async (answerer, name) => {
      documents.set(name, document(await this.ask(answerer, { ask, name, ...subject }), name));
    });
    return documents;
  }

  /** Does something for each experiment, by several processes. */
  private async share(
    names: readonly string[],
    processes: number,
    work: (answerer: Answerer, name: string) => Promise<void>,
  ): Promise<void> {
    const parts = partsOf(names, processes);
    if (parts.length > 0) await this.start();
    const working = parts.map(async (part, i) => {
      const answerer = (this.answerers[i] ??= new Answerer(this.tree, this.limits));
      for (let name = nextOf(part, parts); name !== undefined; name = nextOf(part, parts))
        await work(answerer, name);
    });
    await Promise.all(working);
  }

  private async ask(answerer: Answerer, question: Question): Promise<Answer | string> {
    const { answer, reads } = await answerer.ask(question);
    this.reads.set(question.name, new Set([...(this.reads.get(question.name) ?? []), ...reads]));
    return this.mapped(answer);
  }

  /** An answer as it reads in the user's tree. */
  private mapped(answer: Answer | string): Answer | string {
    if (this.tree === this.home) return answer;
    return JSON.parse(JSON.stringify(answer).replaceAll(this.tree.root, this.home.root)) as Answer | string;
  }

  /** Ends the processes. */
  async end(): Promise<void> {
    await this.started?.catch(() => {});
    await Promise.all(this.answerers.map((answerer) => answerer.end()));
  }
}
