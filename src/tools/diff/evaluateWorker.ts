/** @file Entry point of the process that evaluates the experiments of one version. */
import { Evaluation } from './evaluate.js';
import { limitMemory } from './memoryLimit.js';
import { type Answer, protocolVersion, type Question } from './protocol.js';

limitMemory(Number(process.argv[2]));
const evaluation = new Evaluation();

function send(answer: Answer): void {
  process.send!(answer);
}

async function answer({ ask, ...subject }: Question): Promise<void> {
  if (ask === 'configs') send({ experiment: await evaluation.configs(subject) });
  else if (ask === 'fingerprint') send({ fingerprint: await evaluation.fingerprint(subject) });
  else send({ analysis: await evaluation.analysis(subject) });
}

let last = Promise.resolve();
process.on('message', (question: Question) => {
  last = last.then(() => answer(question));
});
// Whoever asked is gone: nobody waits for an answer any more.
process.on('disconnect', () => process.exit());
send({ ready: protocolVersion });
