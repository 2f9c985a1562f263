/** @file Trial of a prefetch thread: whether it can load the modules that an input's classes are from. */
import type { PrefetchWorkerData } from './prefetchProtocol.js';
import { PrefetchThread } from './prefetchThread.js';

type ThreadData = Omit<PrefetchWorkerData, 'port'>;

/** Trials by their modules: a program's inputs mostly share them. */
const trials = new Map<string, Promise<string | undefined>>();

/** Why a thread has not all classes of an input; undefined where it has. Starts a thread, which ends with the answer. */
export function loadingProblem(name: string, data: ThreadData): Promise<string | undefined> {
  const key = JSON.stringify([data.modules, data.document.modules]);
  const known = trials.get(key) ?? tryLoading(name, data);
  trials.set(key, known);
  return known;
}

async function tryLoading(name: string, data: ThreadData): Promise<string | undefined> {
  const thread = new PrefetchThread(name, data);
  try {
    await thread.load();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await thread.close();
  }
}
