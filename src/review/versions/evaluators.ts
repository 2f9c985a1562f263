/** @file The evaluating processes of one version, with the library of that version. */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endText } from '../../analysis/index.js';
import { Answerer, Child, ChildError, contentsAt, digestOf, WorkerPool } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import type { KeptAnswers } from './answerCache.js';
import { answerProblem } from './answerCheck.js';
import { ImportGraph } from './importGraph.js';
import {
  type AnalysisDocument,
  type Answer,
  type Change,
  type ExperimentDocument,
  type ExportsDocument,
  type FingerprintDocument,
  type Message,
  protocolVersion,
  type Question,
  type ResumedDocument,
  type SavedDocument,
  type WrittenConfigs,
} from './protocol.js';
import { type Tree, tidiedAnalysis, tidiedDocument, tidiedExports, tidiedResumption } from './versionTree.js';

const own = resolve(fileURLToPath(new URL('../../..', import.meta.url)));
const worker = fileURLToPath(new URL(`./evaluateWorker${extname(import.meta.url)}`, import.meta.url));
/** From the library's folder: `src/review/versions/evaluateWorker.ts` in a clone, `dist/…` where it is installed. */
const entry = relative(own, worker);
/** The entry of versions before the room `review`. */
const formerEntry = 'src/tools/diff/evaluateWorker.ts';

/** The evaluator's own files, from the library's folder; they import nothing that earlier versions of it lack. */
function evaluatorFiles(): string[] {
  const isOurs = (file: string): boolean =>
    /^src\/(review\/|analysis\/|system\/reads\.ts)/.test(relative(own, file));
  const loaded = new ImportGraph(own).closureOf(join(own, entry), isOurs);
  return [...loaded].map((file) => relative(own, file));
}

/** Digest of the evaluator's code, which invalidates answers of other evaluators. */
export function evaluatorDigest(): string {
  const tsx = createRequire(join(own, 'package.json')).resolve('tsx/package.json');
  const rooms = ['../', '../../analysis/'].map((room) => join(dirname(worker), room));
  const contents = [...rooms, join(own, 'package.json'), tsx].map((path) => contentsAt(path) ?? 'unknown');
  return digestOf(String(protocolVersion), ...contents);
}

/** Limits on one experiment. */
export interface Limits {
  readonly seconds: number;
  /** Of the process that evaluates it. */
  readonly gigabytes: number;
}

/** States whose processes wait for more questions; to start one takes seconds, and to keep one memory. */
const mostStates = 4;

/** Of a process that ended: it may have read anything. */
const everything = ['/'];

/** Starts a process of a tree. @throws ChildError for another version of the protocol. */
async function begin(
  { library, project, root, around }: Tree,
  { gigabytes }: Limits,
): Promise<Child<Question, Message>> {
  const file = [entry, formerEntry].map((name) => join(library, name)).find((path) => existsSync(path));
  if (file === undefined) throw new ChildError('ended', `${join(library, entry)} is missing.`, '');
  // Traces are many small objects that live a while: copying them too often took a sixth of the time.
  const options = {
    cwd: project,
    args: [String(gigabytes), root, ...(around === undefined ? [] : [around])],
    flags: ['--max-semi-space-size=128'],
    isForeign: true,
  };
  const child = new Child<Question, Message>(pathToFileURL(file), options);
  const message = await child.receive(60_000);
  if ('ready' in message && message.ready === protocolVersion) return child;
  await child.kill();
  throw new ChildError('ended', 'It uses another version of the protocol.', '');
}

/** One process after another that evaluates experiments, with all that the present one has read. */
class Evaluating {
  private readonly answerer: Answerer<Question, Message>;
  private reads: string[] = [];

  constructor(
    tree: Tree,
    private readonly limits: Limits,
  ) {
    const start = (): Promise<Child<Question, Message>> => {
      this.reads = [];
      return begin(tree, limits);
    };
    this.answerer = new Answerer(start, () => true);
  }

  /** Starts the process. @throws ChildError where it does not start. */
  start(): Promise<void> {
    return this.answerer.start();
  }

  /** An answer, or the reason for its absence, with the process's reads so far, the last `numOwn` of them for it. */
  async ask(
    question: Question,
  ): Promise<{ answer: Answer | string; reads: readonly string[]; numOwn: number }> {
    const { seconds } = this.limits;
    const { messages, error } = await this.answerer.ask(question, seconds);
    if (error !== undefined) return { answer: endText(error, 'diff', seconds), reads: everything, numOwn: 0 };
    const problem = answerProblem(messages.at(-1), question);
    const { answer, reads, isSpent } = messages.at(-1) as Exclude<Message, { ready: number }>;
    // What an experiment did to its process, the next one is to have no part in.
    if (problem !== undefined || isSpent) await this.answerer.renew();
    if (problem !== undefined) return { answer: problem, reads: everything, numOwn: 0 };
    const all = [...this.reads, ...reads];
    this.reads = isSpent ? [] : all;
    return { answer, reads: all, numOwn: reads.length };
  }

  end(): Promise<void> {
    return this.answerer.end();
  }
}

/** Questions for a set of experiments. */
interface EvaluationRequest {
  readonly names: readonly string[];
  readonly changes: readonly Change[];
  /** Whether the nearest base class of each that has configs is meant. */
  readonly ofBase?: true;
  /** Directory of a run, whose recorded configs and checkpoints are meant. */
  readonly run?: string;
  /** Configs of another version by the names of experiments, to be fingerprinted in place of this version's. */
  readonly documents?: ReadonlyMap<string, string>;
  /** JSON of another version's `Saved`, by the names of experiments. */
  readonly saved?: ReadonlyMap<string, string>;
  /** Whether another experiment's checkpoints will do. */
  readonly ofAny?: true | undefined;
  /** How many processes may answer. */
  readonly processes: number;
}

/** What is asked of each experiment. */
const firstQuestions = (name: string, { changes }: Pick<EvaluationRequest, 'changes'>): Question[] => [
  { ask: 'configs', name, changes },
  { ask: 'fingerprint', name, changes },
];

/** The processes of one version, as many as questions are worth. */
export class Evaluator {
  /** Processes by the state that experiments change, by `stateOf`; those in use last come last. */
  private readonly pools = new Map<string, WorkerPool<Evaluating>>();
  private started: Promise<void> | undefined;
  private second: Evaluator | undefined;
  private readonly reads = new Map<string, Set<string>>();
  private readonly own = new Map<string, Set<string>>();

  /**
   * `label` is the version's name in errors; `home` is the user's tree. Another, temporary tree may be given an
   * evaluator that it lacks, and its paths in messages are mapped to the user's. Answers in `kept` are reused. Experiments
   * of different texts by `stateOf` share no process.
   */
  constructor(
    private readonly tree: Tree,
    private readonly label: string,
    private readonly home: Tree,
    private readonly limits: Limits,
    private readonly kept?: KeptAnswers,
    private readonly stateOf: (name: string) => string = () => '',
  ) {}

  /**
   * Starts the first process early; otherwise the first question would start it.
   *
   * @throws UsageError where the version has none.
   */
  start(): Promise<void> {
    this.started ??= this.launch();
    // The first question reports it.
    this.started.catch(() => {});
    return this.started;
  }

  private async launch(): Promise<void> {
    const { library, root } = this.tree;
    const isOwn = this.tree !== this.home && (library === root || library.startsWith(`${root}/`));
    const why = await this.unavailableReason();
    if (why === undefined) return;
    if (!isOwn || !existsSync(join(library, 'src/cli/index.ts')))
      throw new UsageError(`${this.label}: there is no Luthier to evaluate its experiments with. ${why}`);
    // An early version, or a later one: ours may do, for it uses little of the library.
    for (const file of evaluatorFiles()) {
      mkdirSync(dirname(join(library, file)), { recursive: true });
      copyFileSync(join(own, file), join(library, file));
    }
    const still = await this.unavailableReason();
    if (still === undefined) return;
    throw new UsageError(
      `${this.label}: its experiments cannot be evaluated by this version of Luthier. ${still}`,
    );
  }

  /** Why the first process does not start; undefined where it does. */
  private async unavailableReason(): Promise<string | undefined> {
    try {
      await this.poolFor('').worker(0).start();
      return undefined;
    } catch (error) {
      if (!(error instanceof ChildError)) throw error;
      return `${error.message}\n${error.output.trim()}`.trim();
    }
  }

  /** The constants and configs of experiments, by at most so many processes. */
  configs(asked: EvaluationRequest): Promise<Map<string, ExperimentDocument>> {
    return this.askAll(
      'configs',
      asked,
      (answer, name): ExperimentDocument =>
        typeof answer === 'string'
          ? { name, error: { message: answer } }
          : tidiedDocument(answer as ExperimentDocument, this.home),
    );
  }

  /** The experiments that modules export, by their paths from the project's folder: asked of a process of their own. */
  async exports(files: readonly string[]): Promise<Map<string, ExportsDocument>> {
    const asked = { names: files, changes: [], processes: 1 };
    const document = (answer: Answer | string, name: string): ExportsDocument =>
      typeof answer === 'string'
        ? { name, error: { message: answer } }
        : tidiedExports(answer as ExportsDocument, this.home);
    const apart = new WorkerPool(() => new Evaluating(this.tree, this.limits));
    try {
      return await this.askAll('exports', asked, document, apart);
    } finally {
      await apart.end();
    }
  }

  /** Configs of experiments by their names, in a form that another version can build. */
  documents(asked: EvaluationRequest): Promise<Map<string, WrittenConfigs>> {
    return this.askAll(
      'document',
      asked,
      (answer, name): WrittenConfigs =>
        typeof answer === 'string' ? { name, notWritten: answer } : (answer as WrittenConfigs),
    );
  }

  /** Fingerprints of experiments. */
  fingerprints(asked: EvaluationRequest): Promise<Map<string, FingerprintDocument>> {
    return this.askAll(
      'fingerprint',
      asked,
      (answer, name): FingerprintDocument =>
        typeof answer === 'string' ? { name, notFingerprinted: answer } : (answer as FingerprintDocument),
    );
  }

  /** Analyses of experiments' models. */
  analyses(asked: EvaluationRequest): Promise<Map<string, AnalysisDocument>> {
    return this.askAll(
      'analysis',
      asked,
      (answer, name): AnalysisDocument =>
        typeof answer === 'string'
          ? { name, notAnalysed: { message: answer } }
          : tidiedAnalysis(answer as AnalysisDocument, this.home),
    );
  }

  /** Descriptions of experiments' checkpoints. */
  saved(asked: EvaluationRequest): Promise<Map<string, SavedDocument>> {
    return this.askAll('saved', asked, (answer, name) =>
      typeof answer === 'string' ? { name, notSaved: answer } : (answer as SavedDocument),
    );
  }

  /** How experiments go on from `asked.saved`. */
  resumed(asked: EvaluationRequest): Promise<Map<string, ResumedDocument>> {
    return this.askAll('resumed', asked, (answer, name) =>
      typeof answer === 'string'
        ? { name, notResumed: answer }
        : tidiedResumption(answer as ResumedDocument, this.home),
    );
  }

  /** The same version in fresh processes, for answers to be compared with the first ones. */
  get again(): Evaluator {
    this.second ??= new Evaluator(this.tree, this.label, this.home, this.limits, undefined, this.stateOf);
    return this.second;
  }

  /** Paths that the processes had read after the experiment, as from `recordReads`. */
  readsOf(name: string): ReadonlySet<string> {
    return this.reads.get(name) ?? new Set(everything);
  }

  /** Files of `own`, or that were read for the experiment itself, whose code has started a process or a thread. */
  startersOf(name: string, own: ReadonlySet<string>): string[] {
    const startersIn = (reads: ReadonlySet<string>): string[] =>
      [...reads].flatMap((read) => /^started:(.*)/s.exec(read)?.[1] ?? []);
    const all = startersIn(this.readsOf(name)).filter((file) => own.has(file));
    return [...new Set([...startersIn(this.ownReadsOf(name)), ...all])];
  }

  /** Paths that were read for the experiment itself, and not before by its process. */
  ownReadsOf(name: string): ReadonlySet<string> {
    return this.own.get(name) ?? new Set();
  }

  /** Makes and fingerprints experiments, one after another, to record their reads. */
  async look(asked: EvaluationRequest): Promise<void> {
    // Both questions go to one process.
    await this.share(this.unknown(asked), asked.processes, async (process, name) => {
      for (const question of firstQuestions(name, asked)) await this.ask(process, question);
    });
  }

  /** Experiments whose configs and fingerprints no earlier review has found, or that make none. */
  unknown(asked: Pick<EvaluationRequest, 'names' | 'changes'>): string[] {
    const isKnown = (name: string): boolean =>
      firstQuestions(name, asked).every((question) => this.known(question) !== undefined);
    return asked.names.filter((name) => !isKnown(name));
  }

  private async askAll<D>(
    ask: Question['ask'],
    { names, processes, documents, saved, ...subject }: EvaluationRequest,
    document: (answer: Answer | string, name: string) => D,
    pool?: WorkerPool<Evaluating>,
  ): Promise<Map<string, D>> {
    const found = new Map<string, D>();
    const questionOf = (name: string): Question => {
      const question = { ask, name, ...subject };
      const [document, from] = [documents?.get(name), saved?.get(name)];
      return {
        ...question,
        ...(document !== undefined && { document: this.here(document) }),
        ...(from !== undefined && { saved: this.here(from) }),
      };
    };
    const unknown = names.filter((name) => {
      const answer = this.known(questionOf(name));
      if (answer !== undefined) found.set(name, document(answer, name));
      return answer === undefined;
    });
    await this.share(
      unknown,
      processes,
      async (process, name) => {
        found.set(name, document(await this.ask(process, questionOf(name)), name));
      },
      pool,
    );
    return found;
  }

  /** An answer that holds from an earlier review. */
  private known(question: Question): Answer | undefined {
    const found = this.kept?.find(question);
    if (found !== undefined) this.note(question, found.reads, found.own);
    return found?.answer;
  }

  /** Does something for each experiment, by several processes. */
  private async share(
    names: readonly string[],
    most: number,
    work: (process: Evaluating, name: string) => Promise<void>,
    pool?: WorkerPool<Evaluating>,
  ): Promise<void> {
    if (names.length === 0) return;
    await this.start();
    const groups = new Map<string, string[]>();
    for (const name of names) {
      const state = pool === undefined ? this.stateOf(name) : '';
      groups.set(state, [...(groups.get(state) ?? []), name]);
    }
    for (const [state, group] of groups) await (pool ?? this.poolFor(state)).each(group, most, work);
  }

  /** The processes of experiments of a state. */
  private poolFor(state: string): WorkerPool<Evaluating> {
    const pool = this.pools.get(state) ?? new WorkerPool(() => new Evaluating(this.tree, this.limits));
    this.pools.delete(state);
    this.pools.set(state, pool);
    const [oldest] = [...this.pools.keys()].filter((each) => each !== '');
    if (this.pools.size > mostStates) {
      void this.pools.get(oldest!)!.end();
      this.pools.delete(oldest!);
    }
    return pool;
  }

  private async ask(process: Evaluating, question: Question): Promise<Answer | string> {
    const { answer, reads, numOwn } = await process.ask(question);
    this.note(question, reads, reads.slice(reads.length - numOwn));
    const mapped = this.mapped(answer);
    if (typeof mapped !== 'string') this.kept?.keep(question, mapped, reads, numOwn);
    return mapped;
  }

  private note({ name }: Question, reads: readonly string[], own: readonly string[]): void {
    this.reads.set(name, new Set([...(this.reads.get(name) ?? []), ...reads]));
    this.own.set(name, new Set([...(this.own.get(name) ?? []), ...own]));
  }

  /** A text of the user's tree as it reads in this one. */
  private here(text: string): string {
    return this.tree === this.home ? text : text.replaceAll(this.home.root, this.tree.root);
  }

  /** An answer as it reads in the user's tree. */
  private mapped(answer: Answer | string): Answer | string {
    if (this.tree === this.home) return answer;
    const { root, around } = this.tree;
    const text = JSON.stringify(answer).replaceAll(root, this.home.root);
    return JSON.parse(around === undefined ? text : text.replaceAll(around, '')) as Answer | string;
  }

  /** Ends the processes. */
  async end(): Promise<void> {
    await this.started?.catch(() => {});
    await Promise.all([...[...this.pools.values()].map((pool) => pool.end()), this.second?.end()]);
  }
}
