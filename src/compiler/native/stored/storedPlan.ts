/**
 * @file Stored plans: cached results of lowering, so that a process that traces the same graph skips all passes. From
 * its configs to an open program, lm.Small takes 0.22 to 0.24 s of CPU with a plan and 0.44 to 0.51 s without
 * (bench/README.md).
 */
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readRegularFile } from '../../../files/index.js';
import type { Part } from '../../profile/part.js';
import type { PortStorages } from '../../program/backend.js';
import type { Graph } from '../../program/ir.js';
import { type DType, type HostArray, newHostArray } from '../../program/tensors.js';
import type { Group } from '../../rules/collectiveRules.js';
import { isOwn } from '../../rules/index.js';
import type { Overwrite } from '../plan/overwrites.js';
import type { KeptInputs } from '../plan/planGraphs.js';
import { toolchainFlags } from '../toolchain/compileC.js';
import type { Toolchain } from '../toolchain/index.js';
import type { Cache, Wanted } from '../toolchain/programCache.js';
import { compilerVersion } from './compilerVersion.js';
import { hashGraphs } from './graphHash.js';

/** Everything needed to open a program, besides the graph. */
export interface StoredPlan {
  /** C source; the cache finds the compiled library by it. */
  readonly source: string;
  /** Arrays that the program reads. */
  readonly constants: readonly HostArray[];
  /** Storage that the plan has chosen for inputs and outputs. */
  readonly storages: PortStorages;
  /** Outputs that may share memory with inputs. */
  readonly overwrites: readonly Overwrite[];
  /** Groups of ranks that the source names by number. */
  readonly groups: readonly Group[];
  /** Parts behind the program's timing marks, if it is profiled. */
  readonly parts?: readonly (readonly Part[])[] | undefined;
}

/** A constant: its number among those of the traced graphs, or the base64 bytes of a folded one. */
type StoredConstant = number | { readonly dtype: DType; readonly bytes: string };

/** Content of the file. */
interface Document extends Omit<StoredPlan, 'constants'> {
  readonly constants: readonly StoredConstant[];
}

const bytesOf = ({ buffer, byteOffset, byteLength }: HostArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

function dtypeOf(array: HostArray): DType {
  if (array instanceof Float32Array) return 'float32';
  return array instanceof Int32Array ? 'int32' : 'bool';
}

const encode = (array: HostArray): StoredConstant => ({
  dtype: dtypeOf(array),
  bytes: Buffer.from(bytesOf(array)).toString('base64'),
});

function decode({ dtype, bytes }: Exclude<StoredConstant, number>): HostArray {
  const read = Buffer.from(bytes, 'base64');
  const array = newHostArray(dtype, read.length / (dtype === 'bool' ? 1 : 4));
  bytesOf(array).set(read);
  return array;
}

/** Location of a program's plan in the cache. */
export class PlanPlace {
  constructor(
    private readonly cache: Cache,
    private readonly wanted: Wanted,
    /** Constants of the traced graphs. */
    private readonly constants: readonly HostArray[],
  ) {}

  /** The plan, if there is an intact one. */
  find(): StoredPlan | undefined {
    const entry = this.cache.find(this.wanted);
    if (entry === undefined) return undefined;
    const document = JSON.parse(readRegularFile(entry.library).toString()) as Document;
    const constants = document.constants.map((constant) =>
      typeof constant === 'number' ? this.constants[constant]! : decode(constant),
    );
    return { ...document, constants };
  }

  async keep(plan: StoredPlan): Promise<void> {
    const constants = plan.constants.map((array) => {
      const traced = this.constants.indexOf(array);
      return traced < 0 ? encode(array) : traced;
    });
    const document: Document = { ...plan, constants };
    await this.cache.entry(this.wanted, async (folder) =>
      writeFileSync(join(folder, this.cache.libraryName(this.wanted)), JSON.stringify(document)),
    );
  }
}

/** Whether the compiler's version determines the meaning of all operations. */
const areOwn = ({ nodes }: Graph): boolean =>
  nodes.every(({ op, bodies = [] }) => isOwn(op) && bodies.every(areOwn));

/**
 * Locates a program's plan by everything that the plan and the program depend on.
 *
 * @param graphs as traced; one that follows in the same run comes second.
 * @param options.defines macros that the program is compiled with.
 * @param version of the compiler.
 * @returns undefined if the compiler's version is uncertain, or a program defines operations.
 */
export function planPlace(
  toolchain: Toolchain,
  graphs: readonly Graph[],
  options: KeptInputs & { readonly name: string; readonly defines: readonly string[] },
  version = compilerVersion(),
): PlanPlace | undefined {
  if (version === undefined || !graphs.every(areOwn)) return undefined;
  const { cache, compiler, runtime } = toolchain;
  const { name, defines, frozen = [], storages = {} } = options;
  const { hash, constants } = hashGraphs(graphs);
  const wanted: Wanted = {
    kind: 'plan',
    name,
    compiler: compiler.version,
    dependencies: [
      version,
      // Folded constants depend on Node's Math.
      process.version,
      hash,
      JSON.stringify([frozen, storages]),
      basename(runtime.folder),
      ...toolchainFlags(toolchain, defines),
    ],
  };
  return new PlanPlace(cache, wanted, constants);
}
