/** @file Flags of the C compiler: one meaning of floating point for all files, and the machine's own instructions. */

/** C11 with exact NaN and infinity; errno and traps, which nobody reads, would keep loops from being vectorised. */
export const baseFlags: readonly string[] = [
  '-std=gnu11',
  '-fPIC',
  '-fopenmp-simd',
  '-fno-math-errno',
  '-fno-trapping-math',
];

/** Code for this CPU. @param cpu what `cpuFeatures` tells. */
export function machineFlags(cpu: string, arch: string = process.arch): string[] {
  if (arch === 'x64') {
    const width = /\bavx512f\b/.test(cpu) ? 512 : 256;
    return ['-march=native', `-mprefer-vector-width=${width}`];
  }
  return arch === 'arm64' ? ['-mcpu=native'] : [];
}

/**
 * Makes a shared library that needs nothing unknown.
 *
 * @param name what libraries that are linked with it know it by.
 * @param folders where it finds the ones that it was linked with, relative to its own folder.
 */
export function linkFlags(
  name: string,
  folders: readonly string[] = [],
  platform = process.platform,
): string[] {
  const darwin = platform === 'darwin';
  const origin = darwin ? '@loader_path' : '$ORIGIN';
  const naming = darwin ? [`-Wl,-install_name,@rpath/${name}`] : [`-Wl,-soname,${name}`, '-Wl,-z,defs'];
  return ['-shared', ...naming, ...folders.map((folder) => `-Wl,-rpath,${origin}/${folder}`)];
}
