/** @file `luthier serve` in a process of its own, and what the system and the server say of it. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Running, startCommand } from '../../command.js';

/** A server that listens. */
export class Served {
  private constructor(
    readonly running: Running,
    readonly url: string,
  ) {}

  static async start(directory: string, flags: readonly string[] = []): Promise<Served> {
    const command = ['serve', directory, '--port=0', ...flags];
    const running = startCommand(command, undefined, 'src/tools/commandLine.ts');
    let told = '';
    while (!told.includes('\n')) told += String(await once(running.child.stdout!, 'data'));
    return new Served(running, /http:\/\/\S+:\d+/.exec(told)![0]);
  }

  /** Continuations that are decoded or wait. */
  async slots(): Promise<number> {
    const answer = await fetch(`${this.url}/health`);
    return ((await answer.json()) as { completions: number }).completions;
  }

  /** Files, pipes and sockets that the process has open. */
  get handles(): number {
    return readdirSync(`/proc/${this.running.child.pid}/fd`).length;
  }

  /** Waits until nothing is under way, and no more is open than at first. */
  async untilIdle(handles: number): Promise<void> {
    // The connection of the question counts.
    while ((await this.slots()) > 0 || this.handles > handles + 1) await sleep(20);
  }
}
