/** @file Generated classes, whole; and what cannot be generated. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type CodegenClassOptions, codegenClass } from '../../../src/hparams/codegen/codegen.js';
import * as hparams from '../../../src/hparams/index.js';
import { addTag, Configurable, defineTag, instance, isEqual, sub } from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';
import { evaluate } from './program.js';

const rate = defineTag('codegenClass.rate', 'Rates of learning.');
class Head extends Configurable.with({ dims: z.int().positive(), rate: z.number().default(0.1) }) {}
class Body extends Configurable.with({
  head: instance(Head).optional(),
  heads: z.array(instance(Head, null)).default([]),
  tpl: sub(Head, () => Head.config({ dims: 2 })),
  data: z.any().optional(),
}) {}
/** What generated classes extend. */
class Model {
  task(): unknown {
    return undefined;
  }
  datasets(): unknown {
    return [];
  }
}
const modules = { './parts.js': { Body, Head, rate, Model } };

function options(more: Partial<CodegenClassOptions> = {}): CodegenClassOptions {
  return {
    modules,
    className: 'Made',
    baseClass: Model,
    fileComment: 'A file.',
    comment: 'A class.',
    ...more,
  };
}

/** The text, whose methods return equal values that share what the values share. */
function generated(
  values: Readonly<Record<string, unknown>>,
  more: Partial<CodegenClassOptions> = {},
): string {
  const text = codegenClass(values, options(more));
  const { [more.className ?? 'Made']: Made } = evaluate(text, {
    'luthier/hparams': hparams,
    ...(more.modules ?? modules),
  });
  const made = new (Made as unknown as new () => Record<string, () => unknown>)();
  const again = Object.fromEntries(Object.keys(values).map((name) => [name, made[name]!()]));
  expect(isEqual(again, values, { tags: true })).toBe(true);
  return text;
}

describe('codegenClass', () => {
  it('has a method for each value', () => {
    const values = {
      task: Body.config({ head: Head.config({ dims: 4 }) }),
      datasets: [Head.config({ dims: 1 }), Head.config({ dims: 2 })],
    };
    expect(generated(values)).toBe(`\
/** @file A file. */
import { Body, Head, Model } from './parts.js';

/** A class. */
export class Made extends Model {
  override task() {
    return Body.config({ head: Head.config({ dims: 4 }) });
  }

  override datasets() {
    return [Head.config({ dims: 1 }), Head.config({ dims: 2 })];
  }
}
`);
  });

  it('names what is shared inside of a method, and what has tags', () => {
    const head = Head.config({ dims: 4 });
    const tagged = Body.config({ heads: [head, head] });
    addTag(tagged, 'data', rate);
    const text = generated({ task: tagged });
    expect(text).toContain(`\
  override task() {
    const sharedHeads0 = Head.config({ dims: 4 });
    const task = Body.config({ heads: [sharedHeads0, sharedHeads0] });
    addTag(task, 'data', rate);
    return task;
  }
`);
    expect(text).toContain("import { addTag } from 'luthier/hparams';\n");
  });

  it('makes everything in one place where methods share a config', () => {
    const shared = Head.config({ dims: 4 });
    expect(generated({ task: Body.config({ head: shared }), datasets: [shared] })).toBe(`\
/** @file A file. */
import { Body, Head, Model } from './parts.js';

function makeConfigs() {
  const sharedHead = Head.config({ dims: 4 });
  return { task: Body.config({ head: sharedHead }), datasets: [sharedHead] };
}

/** A class. */
export class Made extends Model {
  readonly #configs = makeConfigs();

  override task() {
    return this.#configs.task;
  }

  override datasets() {
    return this.#configs.datasets;
  }
}
`);
  });

  it('keeps the sharing of a default between methods', () => {
    const task = Body.config();
    expect(generated({ task, datasets: [task.tpl] })).toContain(
      'return { task: Body.config({ tpl: sharedTpl }), datasets: [sharedTpl] };',
    );
  });

  it('gives way to the name of the class, and keeps the lines of what is said of it', () => {
    const comment = 'What the class is for.\n*/ ends nothing.';
    const text = generated({ task: Head.config({ dims: 1 }) }, { className: 'Head', comment });
    expect(text).toContain("import { Head as HeadClass, Model } from './parts.js';\n");
    expect(text).toContain(`\
/**
 * What the class is for.
 * *\\/ ends nothing.
 */
export class Head extends Model {
  override task() {
    return HeadClass.config({ dims: 1 });
  }
}
`);
  });

  it('takes the styles of codegen', () => {
    const values = { task: Body.config({ head: Head.config({ dims: 4 }) }) };
    expect(generated(values, { style: 'statements' })).toContain(`\
    const head = Head.config();
    head.dims = 4;
    const task = Body.config();
    task.head = head;
    return task;
`);
    expect(generated(values, { history: true })).toMatch(
      /\/\/ test\/hparams\/codegen\/codegenClass.*\n *dims: 4,/,
    );
  });

  it('says where what stands that cannot be written', () => {
    const values = { task: Body.config({ heads: [Head.config({ dims: 1 })], data: { made: () => 1 } }) };
    expect(messageOf(() => codegenClass(values, options()))).toMatch(
      /^task\.data\['made'\]: .* cannot be written as code\./,
    );
    expect(
      messageOf(() => codegenClass(values, options({ modules: { './parts.js': { Body, Model } } }))),
    ).toMatch(/^task\.heads\[0\]: the class Head cannot be imported: /);
    expect(messageOf(() => codegenClass(values, options({ modules: {} })))).toMatch(
      /^<root>: the class Model cannot be imported: no modules were given\./,
    );
  });

  it('refuses names that are none', () => {
    for (const className of ['class', 'a b', 'Map', '']) {
      expect(messageOf(() => codegenClass({}, options({ className })))).toBe(
        `'${className}' cannot be the name of a class.`,
      );
    }
    for (const name of ['constructor', 'a b', '__proto__']) {
      expect(messageOf(() => codegenClass(JSON.parse(`{"${name}": 1}`), options()))).toBe(
        `codegenClass: '${name}' cannot be the name of a method.`,
      );
    }
  });
});
