/** @file Requests in progress, which end by themselves, with their client's connection, or with the server. */
import type { Socket } from 'node:net';
import { HttpError } from './httpError.js';

/** Ends work. @param error for the client; undefined where it is gone */
export type EndWork = (error: HttpError | undefined) => void;

const stopping = (): HttpError =>
  new HttpError(503, 'The server is shutting down, and has not finished this request.', {
    code: 'shutting_down',
  });

/** Work by the connection of its client: a response that never gets its connection is never closed, the connection is. */
export class ActiveRequests {
  readonly #work = new Map<Socket, Set<EndWork>>();
  #isStopped = false;

  /**
   * Has `end` called once if the connection closes or the server stops before the work is done; at once where that has
   * happened.
   *
   * @returns to be called when the work is done
   */
  begin(connection: Socket, end: EndWork): () => void {
    if (connection.destroyed) end(undefined);
    else if (this.#isStopped) end(stopping());
    else {
      const all = this.#workOf(connection);
      all.add(end);
      return () => void all.delete(end);
    }
    return () => undefined;
  }

  /** Ends all work, with an error for its clients. */
  stop(): void {
    this.#isStopped = true;
    for (const all of this.#work.values()) endAll(all, stopping());
  }

  #workOf(connection: Socket): Set<EndWork> {
    const known = this.#work.get(connection);
    if (known !== undefined) return known;
    const all = new Set<EndWork>();
    this.#work.set(connection, all);
    connection.once('close', () => {
      this.#work.delete(connection);
      endAll(all, undefined);
    });
    return all;
  }
}

function endAll(all: Set<EndWork>, error: HttpError | undefined): void {
  for (const end of [...all]) end(error);
  all.clear();
}
