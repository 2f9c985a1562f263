/** @file CPU model and extensions, as a text that is equal for CPUs with equal capabilities. */
import { readFileSync } from 'node:fs';
import { runProcess } from './process.js';

/** Extensions that compilers generate code for; others vary with kernels and hypervisors. */
const matters =
  /^(mmx|f?ma4?|sse\w*|ssse\w*|avx\w*|amx\w*|bmi\w*|f16c|popcnt|abm|lzcnt|movbe|adx|aes|vaes|sha\w*|gfni|v?pclmul\w*|fp|asimd\w*|atomics|bf16|i8mm|sve\w*|svei8mm|svebf16|sme\w*|crc32|rdseed|rdrnd|cx16|v)$/;

/** Fields of /proc/cpuinfo that identify models, which compilers tune for. */
const identity = ['vendor_id', 'cpu family', 'model', 'CPU implementer', 'CPU part', 'uarch'];

/** Model and sorted extensions of the first processor in /proc/cpuinfo. */
export function describeCpuinfo(text: string): string {
  const fields = new Map<string, string>();
  for (const line of text.split('\n\n', 1)[0]!.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  const listed = fields.get('flags') ?? fields.get('Features') ?? fields.get('isa') ?? '';
  const model = identity.flatMap((name) => fields.get(name) ?? []);
  return [
    ...model,
    ...listed
      .split(/\s+/)
      .filter((flag) => matters.test(flag))
      .sort(),
  ].join(' ');
}

/** Architecture, model and extensions, such as `x64 AuthenticAMD 26 17 abm adx aes avx avx2`. */
export async function cpuFeatures(): Promise<string> {
  return [process.arch, await describe()].join(' ').trim();
}

/** Extensions that change the results of products or loops, as named by /proc/cpuinfo and, in capitals, by sysctl. */
const decisive = /^(avx2|fma|avx512f|avx512_bf16|amx_bf16|asimd)$/;

/** A CPU for display: its model, and the extensions that results depend on, such as `AMD EPYC 9B45 (avx2 fma)`. */
export function shortCpu(features: string, model: string): string {
  const found = features
    .toLowerCase()
    .split(' ')
    .filter((name) => decisive.test(name));
  const name = model.replace(/\s+/g, ' ').trim() || process.arch;
  return found.length === 0 ? name : `${name} (${[...new Set(found)].sort().join(' ')})`;
}

async function describe(): Promise<string> {
  if (process.platform === 'darwin') {
    const names = [
      'machdep.cpu.brand_string',
      'machdep.cpu.features',
      'machdep.cpu.leaf7_features',
      'hw.optional',
    ];
    const { output } = await runProcess('/usr/sbin/sysctl', ['-i', ...names], { env: {}, seconds: 10 });
    return output.split(/\s+/).join(' ');
  }
  return localCpuinfo();
}

/** This machine's /proc/cpuinfo, described; '' where there is none. */
export function localCpuinfo(): string {
  try {
    return describeCpuinfo(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return '';
  }
}
