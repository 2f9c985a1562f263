/** @file The package registry, and nothing else of the network, for package managers that tests run. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** The registry that npm is set to here. */
function configured(): string {
  const said = execFileSync('npm', ['config', 'get', 'registry'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return said.trim().replace(/\/$/, '');
}

/**
 * Passes requests on to a registry. yarn asks a host of its own for what is on npm's, so it is given this address.
 *
 * @returns the server, with its address
 */
async function relay(registry: string): Promise<[Server, string]> {
  const server = createServer(async ({ url = '/', headers }, response) => {
    try {
      const asked = await fetch(`${registry}${url}`, { headers: { accept: headers.accept ?? '*/*' } });
      const type = asked.headers.get('content-type') ?? '';
      const body = Buffer.from(await asked.arrayBuffer());
      response.writeHead(asked.status, { 'content-type': type });
      response.end(type.includes('json') ? body.toString().replaceAll(`"${registry}/`, `"${own}/`) : body);
    } catch (error) {
      response.writeHead(502).end(String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return [server, own];
}

/** A preload of Node that connects to this machine and to one host, and writes down which others were asked for. */
const guard = (host: string, log: string) => `
const { Socket } = require('node:net');
const { appendFileSync } = require('node:fs');
const { connect } = Socket.prototype;
const allowed = ['localhost', '127.0.0.1', '::1', ${JSON.stringify(host)}];
Socket.prototype.connect = function (...args) {
  const [first] = args.flat();
  const host = (typeof first === 'object' && first !== null && first.host) || 'localhost';
  if (allowed.includes(host)) return connect.apply(this, args);
  appendFileSync(${JSON.stringify(log)}, host + '\\n');
  process.nextTick(() => this.destroy(new Error('The test refuses ' + host)));
  return this;
};`;

/** What commands that may reach the registry alone are started with. */
export interface RegistryAlone {
  readonly env: NodeJS.ProcessEnv;
  /** Hosts that were asked for besides. */
  refused(): string[];
  close(): void;
}

/**
 * Environment in which programs of Node reach the registry alone.
 *
 * @param folder is there, and takes what this writes.
 * @param relays whether requests go by a relay of this process.
 */
export async function registryAlone(
  folder: string,
  env: NodeJS.ProcessEnv,
  relays: boolean,
): Promise<RegistryAlone> {
  const [preload, log] = [join(folder, 'guard.cjs'), join(folder, 'refused.txt')];
  const registry = configured();
  writeFileSync(preload, guard(new URL(registry).hostname, log));
  const [server, address] = relays ? await relay(registry) : [undefined, registry];
  return {
    env: {
      ...env,
      NODE_OPTIONS: `--require ${preload}`,
      npm_config_registry: `${address}/`,
      ...(relays && { YARN_REGISTRY: address }),
    },
    refused: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    close: () => server?.close(),
  };
}
