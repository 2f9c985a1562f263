/** @file Hosts of a server: loopback addresses, and the host names that requests may use. */
import { BlockList, isIP } from 'node:net';
import { HttpError } from './httpError.js';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
loopback.addSubnet('::ffff:127.0.0.0', 104, 'ipv6');

/** Whether only programs of this machine reach the host: `localhost`, an address of 127.0.0.0/8, `::1`. */
export function isLoopback(host: string): boolean {
  const kind = isIP(host);
  if (kind === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, kind === 4 ? 'ipv4' : 'ipv6');
}

/**
 * Checks the header `Host`, against DNS rebinding: a web page's own host name may resolve to this machine, and then
 * its requests name that host.
 *
 * @param host that the server listens on
 * @throws HttpError 403 for a name that is not this machine's, if the server is for this machine only
 */
export function checkHost(header: string, host: string): void {
  const named = header.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  if (!isLoopback(host) || isLoopback(named)) return;
  throw new HttpError(403, `The host '${named}' is not this server's: expected localhost, 127.0.0.1, ::1.`);
}
