/** @file The process that checks experiments, one after another, until it is left alone. */
import { Check } from './check.js';
import type { Answer, Question } from './protocol.js';

function send(answer: Answer): void {
  process.send!(answer);
}

let check: Check | undefined;

async function answer(question: Question): Promise<void> {
  check = new Check(question, (level) => send({ kind: 'reached', level }));
  send({ kind: 'done', findings: await check.run() });
}

let last = Promise.resolve();
process.on('message', (question: Question) => {
  last = last.then(() => answer(question));
});
// Left alone, these end the process, and would be blamed on the experiment after it.
process.on('unhandledRejection', (error) => check?.stray(error));
process.on('uncaughtException', (error) => check?.stray(error));
// Whoever asked is gone: nobody waits for an answer any more.
process.on('disconnect', () => process.exit());
send({ kind: 'ready' });
