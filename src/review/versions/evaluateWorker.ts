/** @file Entry point of a process that evaluates experiments of one version. */

import { recordReads } from '../../system/index.js';
import { limitMemory } from './memoryLimit.js';
import { type Answer, type Message, protocolVersion, type Question } from './protocol.js';

limitMemory(Number(process.argv[2]));
const takeReads = recordReads();
// Modules loaded from here on are the version's.
const { Evaluation } = await import('./evaluate.js');
const evaluation = new Evaluation();

function answer({ ask, ...subject }: Question): Promise<Answer> {
  if (ask === 'configs') return evaluation.configs(subject);
  if (ask === 'exports') return evaluation.exports(subject);
  if (ask === 'document') return evaluation.document(subject);
  if (ask === 'saved') return evaluation.saved(subject);
  if (ask === 'resumed') return evaluation.resumed(subject);
  return ask === 'fingerprint' ? evaluation.fingerprint(subject) : evaluation.analysis(subject);
}

function send(message: Message): void {
  process.send!(message);
}

let last = Promise.resolve();
process.on('message', (question: Question) => {
  last = last.then(async () => send({ answer: await answer(question), reads: takeReads() }));
});
// The parent has ended.
process.on('disconnect', () => process.exit());
send({ ready: protocolVersion });
