/**
 * Names a server's tools for providers: `<server>_<tool>`, in the characters and the length that every provider
 * accepts, unique, and the same after every start. Pure. Spec: MC-10, MC-39.
 */
import { createHash } from "node:crypto"

const longest = 64
const hashLength = 8

/** Daybook's own names with a `_`: a server's tool must not have the name of such a tool or permission. */
const ours = new Set(["apply_patch", "external_directory"])

const hashed = (name: string, server: string, tool: string): string => {
  const hash = createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, hashLength)
  return `${name.slice(0, longest - hashLength - 1)}_${hash}`
}

/**
 * A server's tools by offered name. Depends only on the configured servers and this server's tools, not on the order of
 * connections. A changed name, or one that another server's tool could have, gets a hash only if it would not be unique
 * without.
 */
export const offeredNames = (
  server: string,
  servers: ReadonlyArray<string>,
  tools: ReadonlyArray<string>
): ReadonlyMap<string, string> => {
  const plain = new Map(tools.map((tool) => [tool, `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, "_")]))
  const counts = new Map<string, number>()
  for (const name of plain.values()) counts.set(name, (counts.get(name) ?? 0) + 1)
  // `a` with `b_c` and `a_b` with `c` collide: the server with the longer name keeps its tools' names.
  const longer = servers.filter((other) => other.startsWith(`${server}_`))
  const names = new Map<string, string>()
  for (const [tool, name] of plain) {
    const exact = name === `${server}_${tool}`
    const shared = (counts.get(name) ?? 0) > 1 && !exact
    const foreign = ours.has(name) || longer.some((other) => name.startsWith(`${other}_`))
    names.set(shared || foreign || name.length > longest ? hashed(name, server, tool) : name, tool)
  }
  return names
}
