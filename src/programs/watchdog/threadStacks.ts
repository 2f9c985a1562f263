/** @file Stacks of a process's threads: JavaScript by the inspector, all others as the system knows them. */
import { readdirSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { SourceMap } from 'node:module';
import { threadId } from 'node:worker_threads';

/** A frame, as the inspector tells it: lines and columns count from 0. */
interface Frame {
  readonly functionName: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber?: number | undefined;
  };
}

/** A script, as the inspector tells it. */
interface Script {
  readonly scriptId: string;
  readonly url: string;
  readonly sourceMapURL?: string | undefined;
}

interface WorkerInfo {
  readonly title: string;
}

/** A worker's message, of the kinds that are read here. */
type WorkerMessage =
  | { readonly method: 'Debugger.scriptParsed'; readonly params: Script }
  | { readonly method: 'Debugger.paused'; readonly params: { readonly callFrames: readonly Frame[] } }
  | { readonly method?: undefined };

/** How long a thread may take to tell its scripts and to stop. One that computes in C, or waits for the system, does not. */
const PAUSE_MS = 4000;

/** Scripts of a thread, which frames name by number. */
class Scripts {
  readonly #byId = new Map<string, Script>();

  add(script: Script): void {
    this.#byId.set(script.scriptId, script);
  }

  /** Lines of a stack, with the places of the sources. */
  linesOf(frames: readonly Frame[]): string[] {
    return frames.map(({ functionName, location }) => {
      return `    at ${functionName === '' ? '(anonymous)' : functionName} (${this.#placeOf(location)})`;
    });
  }

  #placeOf({ scriptId, lineNumber, columnNumber = 0 }: Frame['location']): string {
    const { url = '', sourceMapURL = '' } = this.#byId.get(scriptId) ?? {};
    const [, map] = /^data:application\/json;.*base64,(.*)$/.exec(sourceMapURL) ?? [];
    const mapped = map === undefined ? undefined : sourceOf(map, lineNumber, columnNumber);
    return `${url}:${(mapped?.line ?? lineNumber) + 1}:${(mapped?.column ?? columnNumber) + 1}`;
  }
}

/** The place in a source that a place of its translation stands for. @param map a source map as base64 */
function sourceOf(map: string, line: number, column: number): { line: number; column: number } | undefined {
  try {
    const entry = new SourceMap(JSON.parse(Buffer.from(map, 'base64').toString())).findEntry(line, column);
    return 'originalLine' in entry ? { line: entry.originalLine, column: entry.originalColumn } : undefined;
  } catch {
    return undefined;
  }
}

const NONE = ['    runs no JavaScript: it waits for an event or a system call, or computes in machine code'];

/** The main thread, seen from another one. */
export class MainThread {
  readonly #session = new Session();

  constructor() {
    this.#session.connectToMainThread();
  }

  /** Ends the JavaScript that runs, as an endless loop. */
  terminate(): void {
    this.#session.post('Runtime.terminateExecution');
  }

  /** Lines about the stacks of the main thread and of its workers. */
  async stacks(): Promise<string[]> {
    const [workers, main] = await Promise.all([this.#workers(), this.#paused()]);
    return ['Main thread:', ...(main ?? NONE), ...workers];
  }

  #paused(): Promise<string[] | undefined> {
    const session = this.#session;
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(undefined), PAUSE_MS);
      const settle = (lines: string[] | undefined): void => {
        clearTimeout(timer);
        session.post('Debugger.disable');
        resolve(lines);
      };
      const scripts = new Scripts();
      session.on('Debugger.scriptParsed', ({ params }) => scripts.add(params));
      session.once('Debugger.paused', ({ params }) => settle(scripts.linesOf(params.callFrames)));
      session.post('Debugger.enable');
      session.post('Debugger.pause');
    });
  }

  /** Lines about workers, which the main thread has to pass on. */
  #workers(): Promise<string[]> {
    const session = this.#session;
    const found = new Map<string, { readonly title: string; readonly scripts: Scripts; lines?: string[] }>();
    const send = (sessionId: string, method: string): void => {
      const message = JSON.stringify({ id: 1, method });
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message });
    };
    session.on('NodeWorker.attachedToWorker', ({ params }) => {
      const { sessionId, workerInfo } = params as unknown as { sessionId: string; workerInfo: WorkerInfo };
      if (workerInfo.title.startsWith(`[worker ${threadId}]`)) return;
      found.set(sessionId, { title: workerInfo.title, scripts: new Scripts() });
      send(sessionId, 'Debugger.enable');
      send(sessionId, 'Debugger.pause');
    });
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      const { sessionId, message } = params as { sessionId: string; message: string };
      const told = JSON.parse(message) as WorkerMessage;
      const worker = found.get(sessionId)!;
      if (told.method === 'Debugger.scriptParsed') worker.scripts.add(told.params);
      if (told.method !== 'Debugger.paused') return;
      worker.lines = worker.scripts.linesOf(told.params.callFrames);
      send(sessionId, 'Debugger.disable');
    });
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
    return new Promise((resolve) => {
      setTimeout(() => {
        session.post('NodeWorker.disable');
        resolve([...found.values()].flatMap(({ title, lines }) => [`${title}:`, ...(lines ?? NONE)]));
      }, PAUSE_MS);
    });
  }
}

const STATES: Readonly<Record<string, string>> = {
  R: 'runs',
  S: 'waits',
  D: 'waits for a disk',
  T: 'is stopped',
  t: 'is stopped',
  Z: 'has ended',
};

/** Lines about the threads of this process, and about its children, as Linux knows them; none elsewhere. */
export function systemThreads(): string[] {
  try {
    const threads = readdirSync('/proc/self/task').map((id) => stateOf(`/proc/self/task/${id}`, id));
    const children = childrenOf().map((id) => stateOf(`/proc/${id}`, id));
    return [
      'Threads by the system:',
      ...threads,
      ...(children.length > 0 ? ['Child processes:', ...children] : []),
    ];
  } catch {
    return [];
  }
}

function childrenOf(): string[] {
  return readdirSync('/proc/self/task')
    .flatMap((id) => readText(`/proc/self/task/${id}/children`).split(' '))
    .filter((id) => /^\d+$/.test(id));
}

/** `    1234 node: waits (futex_wait_queue)` */
function stateOf(folder: string, id: string): string {
  const [, name = '', letter = ''] = /^\d+ \((.*)\) (\w)/s.exec(readText(`${folder}/stat`)) ?? [];
  const where = readText(`${folder}/wchan`);
  return `    ${id} ${name}: ${STATES[letter] ?? letter}${/^\w{2,}$/.test(where) ? ` (${where})` : ''}`;
}

/** The text of a file of the system; empty where it is gone. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
