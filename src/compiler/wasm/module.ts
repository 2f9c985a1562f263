/** @file WebAssembly binary modules of elementwise programs: a memory and a loop of SIMD instructions. */

/** Value types of WebAssembly. */
const I32 = 0x7f;
const V128 = 0x7b;

/** SIMD opcodes, after the prefix 0xfd (WebAssembly 2.0, float32x4 and v128). */
export const Simd = {
  load: 0x00,
  load32Splat: 0x09,
  store: 0x0b,
  const: 0x0c,
  equal: 0x41,
  notEqual: 0x42,
  less: 0x43,
  greater: 0x44,
  lessEqual: 0x45,
  greaterEqual: 0x46,
  not: 0x4d,
  and: 0x4e,
  or: 0x50,
  bitselect: 0x52,
  abs: 0xe0,
  neg: 0xe1,
  sqrt: 0xe3,
  add: 0xe4,
  sub: 0xe5,
  mul: 0xe6,
  div: 0xe7,
  min: 0xe8,
  max: 0xe9,
} as const;

/** Unsigned LEB128. */
function leb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value >>> 0;
  do {
    const low = rest & 127;
    rest >>>= 7;
    bytes.push(rest === 0 ? low : low | 128);
  } while (rest !== 0);
  return bytes;
}

/** Signed LEB128, for i32.const. */
function signedLeb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 127;
    rest >>= 7;
    const done = (rest === 0 && (low & 64) === 0) || (rest === -1 && (low & 64) !== 0);
    bytes.push(done ? low : low | 128);
    if (done) return bytes;
  }
}

const section = (id: number, body: readonly number[]): number[] => [id, ...leb(body.length), ...body];
const text = (name: string): number[] => [name.length, ...new TextEncoder().encode(name)];

/** Local 0 is the number of bytes to process, local 1 the running offset; the program's values follow. */
const BYTES = 0;
const OFFSET = 1;

/** Writes the instructions of a kernel; values are numbered in order of creation. */
export class KernelWriter {
  private readonly head: number[] = [];
  private readonly body: number[] = [];
  private values = 0;
  /** Loop-invariant values; what depends only on them is computed before the loop. */
  private readonly invariant = new Set<number>();

  private define(code: number[], instructions: readonly number[]): number {
    const local = OFFSET + 1 + this.values++;
    code.push(...instructions, 0x21, ...leb(local));
    return local;
  }

  private defineInvariant(instructions: readonly number[]): number {
    const local = this.define(this.head, instructions);
    this.invariant.add(local);
    return local;
  }

  /** A number in every lane. */
  constant(value: number): number {
    const lane = [...new Uint8Array(Float32Array.of(value).buffer)];
    return this.defineInvariant([0xfd, ...leb(Simd.const), ...lane, ...lane, ...lane, ...lane]);
  }

  /** The float32 at `address` in every lane, read once before the loop. */
  splat(address: number): number {
    return this.defineInvariant([0x41, ...signedLeb(address), 0xfd, ...leb(Simd.load32Splat), 2, 0]);
  }

  /** The next four elements of the array that starts at `address`. */
  load(address: number): number {
    return this.define(this.body, [0x20, OFFSET, 0xfd, ...leb(Simd.load), 4, ...leb(address)]);
  }

  /** Applies an instruction to values. */
  apply(instruction: number, ...operands: readonly number[]): number {
    const reads = operands.flatMap((local) => [0x20, ...leb(local)]);
    const code = [...reads, 0xfd, ...leb(instruction)];
    const isInvariant = operands.every((local) => this.invariant.has(local));
    return isInvariant ? this.defineInvariant(code) : this.define(this.body, code);
  }

  /** Writes a value to the array that starts at `address`. */
  store(address: number, value: number): void {
    this.body.push(0x20, OFFSET, 0x20, ...leb(value), 0xfd, ...leb(Simd.store), 4, ...leb(address));
  }

  /** The module: exports `memory` and `kernel(bytes)`, where bytes is a positive multiple of 16. */
  finish(memoryBytes: number): Uint8Array<ArrayBuffer> {
    const step = [0x20, OFFSET, 0x41, 16, 0x6a, 0x22, OFFSET];
    const loop = [0x03, 0x40, ...this.body, ...step, 0x20, BYTES, 0x49, 0x0d, 0, 0x0b];
    const locals = [2, 1, I32, ...leb(this.values), V128];
    const code = [...locals, ...this.head, ...loop, 0x0b];
    const pages = Math.ceil(memoryBytes / 65536);
    return Uint8Array.from([
      ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(1, [1, 0x60, 1, I32, 0]),
      ...section(3, [1, 0]),
      ...section(5, [1, 0, ...leb(pages)]),
      ...section(7, [2, ...text('memory'), 2, 0, ...text('kernel'), 0, 0]),
      ...section(10, [1, ...leb(code.length), ...code]),
    ]);
  }
}
