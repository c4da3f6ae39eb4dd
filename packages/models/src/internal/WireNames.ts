/**
 * Names of tools on the wire. Providers take letters, digits, `_` and `-`, and a provider's library may take a name for
 * that of its provider's own tool: a tool with such a name goes under an alias, and so does a name in the history that
 * a model made up. Pure. Spec: MD-58.
 */
import { Tool } from "@effect/ai"

export interface WireNames {
  /** The name that the provider is given. */
  readonly toWire: (name: string) => string
  /** The name of the offered tool that a model called. */
  readonly fromWire: (name: string) => string
}

const maxLength = 64

/** `base`, or `base` with the first number that makes it free, within a length. */
export const freeName = (base: string, length: number, taken: (name: string) => boolean, from = 2): string => {
  let name = base.slice(0, length)
  for (let nth = from; taken(name); nth++) name = `${base.slice(0, length - `_${nth}`.length)}_${nth}`
  return name
}

/**
 * @param tools what the request offers; tools that the provider defines keep their names
 * @param shadowed names that the provider's library takes for those of other tools
 */
export const wireNames = (tools: ReadonlyArray<Tool.Any>, shadowed: ReadonlySet<string>): WireNames => {
  const plain = (name: string): string =>
    shadowed.has(name) ? `local_${name}` : name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, maxLength) || "tool"
  const taken = new Set(tools.map(({ name }) => name))
  const aliases = new Map<string, string>()
  const originals = new Map<string, string>()
  for (const tool of tools) {
    if (Tool.isProviderDefined(tool) || plain(tool.name) === tool.name) continue
    const alias = freeName(plain(tool.name), maxLength, (name) => taken.has(name))
    taken.add(alias)
    aliases.set(tool.name, alias)
    originals.set(alias, tool.name)
  }
  return {
    toWire: (name) => aliases.get(name) ?? plain(name),
    fromWire: (name) => originals.get(name) ?? name
  }
}
