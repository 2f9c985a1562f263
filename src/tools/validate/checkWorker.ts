/** @file Entry point of a checking process, which checks experiments in sequence. */
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
  // Makes Linux kill this process first when memory runs out.
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // Other systems lack this file.
}

let last = Promise.resolve();
process.on('message', (question: Question) => {
  last = last.then(() => answer(question));
});
// Unhandled, these would end the process, and the next experiment would be blamed.
process.on('unhandledRejection', (error) => check?.stray(error));
process.on('uncaughtException', (error) => check?.stray(error));
// The parent has gone.
process.on('disconnect', () => process.exit());
send({ kind: 'ready' });
