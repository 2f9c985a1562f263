/** @file Entry point of a process that evaluates experiments of one version. */

import { recordReads } from '../../system/index.js';
import { limitMemory } from './memoryLimit.js';
import { type Answer, type Message, protocolVersion, type Question } from './protocol.js';

limitMemory(Number(process.argv[2]));
const takeReads = recordReads();
// Modules loaded from here on are the version's.
const { Evaluation } = await import('./evaluate.js');
const { omitRoot } = await import('../fingerprints/digests.js');
omitRoot(process.argv[3]!, process.argv[4]);
const evaluation = new Evaluation();

function answer({ ask, ...subject }: Question): Promise<Answer> {
  if (ask === 'configs') return evaluation.configs(subject);
  if (ask === 'exports') return evaluation.exports(subject);
  if (ask === 'document') return evaluation.document(subject);
  if (ask === 'saved') return evaluation.saved(subject);
  if (ask === 'resumed') return evaluation.resumed(subject);
  return ask === 'fingerprint' ? evaluation.fingerprint(subject) : evaluation.analysis(subject);
}

/** The functions of JavaScript that evaluation rests on. */
function intrinsics(): unknown[] {
  const owners = [
    JSON,
    Object,
    Reflect,
    Array,
    Array.prototype,
    Map.prototype,
    Set.prototype,
    String.prototype,
  ];
  return [...owners, Promise.prototype, Number].flatMap((owner) =>
    Reflect.ownKeys(owner).map((key) => Reflect.getOwnPropertyDescriptor(owner, key)!.value as unknown),
  );
}

const original = new Set(intrinsics());
const send = process.send!.bind(process) as (message: Message) => void;

/** Whether any of them was replaced. Additions do no harm. */
function isSpent(): boolean {
  const present = new Set(intrinsics());
  return [...original].some((each) => typeof each === 'function' && !present.has(each));
}

let last = Promise.resolve();
process.on('message', (question: Question) => {
  last = last.then(async () => {
    const given = await answer(question);
    send({ answer: given, reads: takeReads(), ...(isSpent() && { isSpent: true }) });
  });
});
// The parent has ended.
process.on('disconnect', () => process.exit());
send({ ready: protocolVersion });
