/** @file C compiler flags: one floating-point semantics for all files, and the machine's own instructions. */

/** C11 with exact NaN and infinity; errno and traps, which are never read, would prevent vectorisation. */
export const baseFlags: readonly string[] = [
  '-std=gnu11',
  '-fPIC',
  '-fopenmp-simd',
  '-fno-math-errno',
  '-fno-trapping-math',
];

/**
 * Flags for code on this CPU.
 *
 * ARM64 code is for any such CPU: all have NEON. With SVE, gcc 12 reads the partial sums of short loops before they are
 * written. Apple's compilers target the first of its processors by themselves.
 *
 * @param cpu from `cpuFeatures`.
 */
export function machineFlags(
  cpu: string,
  arch: string = process.arch,
  platform: string = process.platform,
): string[] {
  if (arch === 'x64') {
    const width = /\bavx512f\b/.test(cpu) ? 512 : 256;
    return ['-march=native', `-mprefer-vector-width=${width}`];
  }
  return arch === 'arm64' && platform !== 'darwin' ? ['-march=armv8-a'] : [];
}

/**
 * Flags for a shared library without undefined symbols.
 *
 * @param name its soname, for libraries that link against it.
 * @param folders of the libraries that it links against, relative to its own folder.
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
