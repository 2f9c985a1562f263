import { describe, expect, test } from 'vitest';
import { tryNative } from '../../../../src/compiler/native/compileNatively.js';
import { openThreadRanks } from '../../../../src/compiler/native/threadRanks.js';
import type { Backend } from '../../../../src/compiler/program/backend.js';
import type { Graph } from '../../../../src/compiler/program/ir.js';
import { sizeOf } from '../../../../src/compiler/program/tensors.js';
import { draw, runs, title } from '../../../faults/campaign.js';
import { hasCompiler } from '../compilerSupport.js';
import { caseOf, meaningOf, programOf } from './rankCases.js';
import { GraphMaker, runOnThreads } from './rankPrograms.js';

const MESHES = [
  [2, 2],
  [2, 2, 2],
  [1, 4],
  [2, 3],
];

describe.skipIf(!hasCompiler)('collectives', () => {
  test.each(MESHES.map((mesh) => [mesh.join('x'), mesh] as const))(
    title('of a mesh of %s give every rank what JavaScript does'),
    async (_, mesh) => {
      const cases = draw(caseOf(mesh), runs(300, 30), sizeOf(mesh));
      const { graph, given } = programOf(mesh, cases);
      const results = await runOnThreads([graph], given);
      for (const [i, each] of cases.entries())
        expect({ ...each, results: results.map((own) => own[i]) }).toEqual({
          ...each,
          results: meaningOf(
            each,
            given.map((inputs) => inputs[i]!),
          ),
        });
    },
  );

  const pair = { mesh: [2], axes: [0] };
  const sum = { ...pair, reduction: 'sum' };

  test('are in loops and in the program that follows', async () => {
    // Each turn adds the carries of both ranks to a slice of its own, and gathers it.
    const body = new GraphMaker();
    const [carry, slice] = [body.input([4]), body.input([4])];
    const [both] = body.add('AllReduce', [carry], sum);
    const [next] = body.add('Add', [both!, slice]);
    const [all] = body.add('AllGather', [next!], { ...pair, dim: 0 });
    const first = new GraphMaker();
    const [start, slices] = [first.input([4]), first.input([3, 4])];
    const [last, stack] = first.add('Scan', [start, slices], { carries: 1, xs: 1, length: 3 }, [
      body.graph(next!, all!),
    ]);
    const then = new GraphMaker();
    const x = then.input([3, 8]);
    const [mine] = then.add('ReduceScatter', [x], { ...pair, dim: 1 });
    const [number] = then.add('MemberIndex', [], pair);
    const given = [0, 1].map((rank) =>
      [4, 12, 24].map((size) => Float32Array.from({ length: size }, (_, i) => (rank + 1) * (i + 1))),
    );
    const results = await runOnThreads([first.graph(last!, stack!), then.graph(mine!, number!)], given);
    let carries = given.map(([x]) => Array.from(x!));
    const gathered: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const sums = carries[0]!.map((a, i) => a + carries[1]![i]!);
      carries = given.map(([, slices]) => sums.map((a, i) => a + slices![4 * turn + i]!));
      gathered.push(...carries.flat());
    }
    results.forEach((result, rank) => {
      const parts = Array.from(
        { length: 12 },
        (_, i) => 3 * (8 * Math.floor(i / 4) + 4 * rank + (i % 4) + 1),
      );
      expect(result.map((each) => Array.from(each))).toEqual([carries[rank], gathered, parts, [rank]]);
    });
  });

  test('take part in each of several runs of a call', async () => {
    const maker = new GraphMaker();
    const [all] = maker.add('AllReduce', [maker.input([2])], { ...pair, reduction: 'max' });
    const given = [Float32Array.of(1, 5), Float32Array.of(3, 2)].map((each) => [each]);
    expect(await runOnThreads([maker.graph(all!)], given, { times: 50 })).toEqual(
      given.map(() => [Float32Array.of(3, 5)]),
    );
  });

  /** The message of a program that does not run. */
  const messageOf = async (...args: Parameters<typeof runOnThreads>): Promise<string> => {
    try {
      await runOnThreads(...args);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  const summed = (size: number): Graph => {
    const maker = new GraphMaker();
    return maker.graph(...maker.add('AllReduce', [maker.input([size])], sum));
  };

  test('of a rank that fails fail on the others', async () => {
    const maker = new GraphMaker();
    const [x, indices] = [maker.input([4]), maker.input([1], 'int32')];
    const [row] = maker.add('GatherV2', [x, indices], { axis: 0, batchDims: 0 });
    const [all] = maker.add('AllReduce', [row!], sum);
    const given = [0, 4].map((index) => [new Float32Array(4), Int32Array.of(index)]);
    const message = await messageOf([maker.graph(all!)], given, { name: 'step' });
    expect(message.split('\n')).toEqual([
      'step: allReduce of 4 bytes along the axes 0 of the mesh 2 failed on rank 0: another rank has ended with an error.',
      expect.stringMatching(/^step: .*index/),
    ]);
  });

  test('need the ranks of their mesh', async () => {
    const alone = await tryNative(summed(3), { name: 'step' }).catch((error: Error) => error.message);
    expect(alone).toBe(
      "step: it has collectives of a mesh of 2 ranks, and was compiled without the option 'ranks'.",
    );
    const given = [1, 2, 3].map(() => [new Float32Array(3)]);
    expect(await messageOf([summed(3)], given, { name: 'step' })).toBe(
      'step: expected a mesh of as many ranks as there are, 3, got 2.',
    );
    await expect(openThreadRanks(65)).rejects.toThrow('Expected up to 64 ranks that are threads, got 65.');
    expect(await messageOf([summed(3)], given.slice(1), { name: 'step', numThreads: 2 })).toBe(
      'step: expected numThreads 1 of ranks that are threads, got 2.',
    );
  });

  test('that differ between ranks are refused', async () => {
    const { ranks, close } = await openThreadRanks(2);
    const ended = ranks.map(async (each, rank) => {
      const { backend } = (await tryNative(summed(3 + rank), { name: 'step', ranks: each })) as {
        backend: Backend;
      };
      const [x, y] = [new Float32Array(3 + rank), new Float32Array(3 + rank)];
      await backend
        .bind({ inputs: [x], outputs: [y] })()
        .finally(() => backend.dispose());
    });
    const results = await Promise.allSettled(ended);
    close();
    expect(results.map((each) => (each as PromiseRejectedResult).reason.message)).toEqual(
      [12, 16].map(
        (bytes, rank) =>
          `step: allReduce of ${bytes} bytes along the axes 0 of the mesh 2 failed on rank ${rank}: the ranks call different collectives.`,
      ),
    );
  });
});
