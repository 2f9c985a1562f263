/** @file Entry point of a checking process, which checks experiments one after another. */
import { writeFileSync } from 'node:fs';
import { Check } from './experimentCheck.js';
import type { Answer, Question } from './levels.js';

function send(answer: Answer): void {
  process.send!(answer);
}

let check: Check | undefined;

async function answer(question: Question): Promise<void> {
  check = new Check(question, (level) => send({ kind: 'reached', level }));
  send({ kind: 'done', findings: await check.run() });
}

try {
  // Where memory runs out, Linux is to end this process rather than any other.
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // Other systems have no such file.
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
