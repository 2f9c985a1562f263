/** @file Types of results: those of the function, with host tensors in the places of tensors. */
import { expectTypeOf, test } from 'vitest';
import type { compile, Executable, HostTensor, OnHost, Tensor, Tree } from '../../../src/compiler/index.js';
import type { jit } from '../../../src/jit/index.js';

test('nested results keep their structure; of any structure, they are any structure', () => {
  expectTypeOf<OnHost<{ y: Tensor; parts: [Tensor, { z: Tensor }] }>>().toEqualTypeOf<{
    readonly y: HostTensor;
    readonly parts: readonly [HostTensor, { readonly z: HostTensor }];
  }>();
  expectTypeOf<OnHost<Tree<Tensor>>>().toEqualTypeOf<Tree<HostTensor>>();
  expectTypeOf<OnHost<any>>().toEqualTypeOf<Tree<HostTensor>>();
});

test('compile and jit give them', () => {
  type Results = { readonly y: HostTensor };
  const compiled = (made: ReturnType<typeof compile<{ y: Tensor }>>) => made.then((each) => each.run({}));
  expectTypeOf<ReturnType<typeof compiled>>().resolves.toEqualTypeOf<Results>();
  expectTypeOf<Executable<Results>>().toExtend<Executable>();
  const called = (step: ReturnType<typeof jit<[{ x: Tensor }], { y: Tensor }>>, x: HostTensor) => step({ x });
  expectTypeOf<ReturnType<typeof called>>().resolves.toEqualTypeOf<Results>();
});
