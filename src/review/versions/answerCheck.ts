/** @file Checks of messages from evaluating processes, where a project's own code runs: it may send anything. */
import { z } from 'zod';
import { fingerprinted } from '../fingerprints/fingerprintedParts.js';
import type { Question } from './protocol.js';

const texts = z.record(z.string(), z.string());
const failure = z.looseObject({ message: z.string(), place: z.string().optional() });
const failed = z.looseObject({ error: failure });
const classDocument = z.looseObject({
  lineage: z.array(z.looseObject({ name: z.string() })),
  formerNames: z.array(z.string()),
  formerFields: texts,
});
const entry = z.looseObject({
  class: z.string(),
  values: z.record(z.string(), z.unknown()),
  defaults: z.array(z.string()),
  places: texts,
});
const rates = z.looseObject({ steps: z.number(), rates: z.array(z.number()) });
const made = z.looseObject({
  constants: z.array(z.looseObject({ name: z.string(), setBy: z.string() })),
  formerConstants: texts,
  config: z.looseObject({
    configs: z.array(entry),
    classes: z.record(z.string(), classDocument),
  }),
  learningRates: rates.optional(),
});
const partDigest = z.looseObject({
  hash: z.string().optional(),
  operations: z.string().optional(),
  notCompared: z.string().optional(),
  notRun: texts.optional(),
});
const variable = z.looseObject({ name: z.string(), shape: z.array(z.number()), dtype: z.string() });
const training = z.record(z.string(), partDigest);
const goingOn = {
  variables: z.record(z.string(), z.looseObject({ shape: z.array(z.number()), dtype: z.string() })),
  dataset: z.string(),
};

/** Forms of answers by the kind of question: one of them has to fit. */
const forms: Readonly<Record<Question['ask'], readonly z.ZodType[]>> = {
  configs: [made, failed],
  document: [z.looseObject({ document: z.string() }), z.looseObject({ notWritten: z.string() })],
  fingerprint: [
    z.looseObject({
      fingerprint: z.looseObject(Object.fromEntries(fingerprinted.map((part) => [part, partDigest]))),
    }),
    z.looseObject({ notFingerprinted: z.string() }),
  ],
  analysis: [
    z.looseObject({
      analysis: z.looseObject({
        parameters: z.number(),
        variables: z.array(variable),
        memory: z.looseObject({ total: z.number() }),
      }),
    }),
    z.looseObject({ notAnalysed: failure }),
  ],
  exports: [
    z.looseObject({
      exported: z.array(z.looseObject({ exportName: z.string(), base: z.string() })),
    }),
    failed,
  ],
  saved: [
    z.looseObject({
      saved: z.looseObject({ run: z.looseObject({}), training, document: z.string().optional() }),
    }),
    z.looseObject({ notSaved: z.string() }),
  ],
  resumed: [
    z.looseObject({
      resumed: z.looseObject({ ...goingOn, differences: z.array(z.looseObject({})), training }),
    }),
    z.looseObject({
      resumed: z.looseObject({
        ...goingOn,
        refused: z.string(),
        loads: z.looseObject({ count: z.number(), keeps: z.array(z.string()) }),
        forcedBy: z.array(z.string()),
      }),
    }),
    z.looseObject({ notResumed: z.string() }),
  ],
};

const message = z.looseObject({
  answer: z.looseObject({ name: z.string() }),
  reads: z.array(z.string()),
});

/** Levels of a config that is shown. */
const DEEPEST = 500;

/** Whether a value is nested too deeply, or refers to a config that there is not. */
function isUnfit(value: unknown, numConfigs: number): boolean {
  const pending: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value: at, depth } = next;
    if (typeof at !== 'object' || at === null) continue;
    if (depth > DEEPEST) return true;
    const { $config: index } = at as { $config?: unknown };
    if (
      index !== undefined &&
      !(Number.isInteger(index) && (index as number) >= 0 && (index as number) < numConfigs)
    )
      return true;
    for (const each of Object.values(at)) pending.push({ value: each, depth: depth + 1 });
  }
  return false;
}

/** Why a message is no answer to a question; undefined for one that is. */
export function answerProblem(sent: unknown, { ask, name }: Question): string | undefined {
  const known = message.safeParse(sent);
  if (!known.success || known.data.answer.name !== name)
    return 'Its code sent another message than the answer.';
  const { answer } = known.data;
  if (!forms[ask].some((form) => form.safeParse(answer).success))
    return 'Its code made the answer one of another form.';
  const { config } = answer as { config?: { configs: readonly unknown[] } };
  return isUnfit(answer, config?.configs.length ?? 0)
    ? 'Its configs are nested too deeply, or refer to none.'
    : undefined;
}
