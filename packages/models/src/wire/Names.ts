/**
 * Maps tool names to the wire. Providers accept letters, digits, `_` and `-`. A tool with another name gets an alias; so does
 * an invented name in the history. Pure. Spec: MD-58, MD-792.
 */
import * as Tool from "@effect/ai/Tool"

export interface WireNames {
  readonly toWire: (name: string) => string
  /** The name of the offered tool that the model called, or that the provider ran. */
  readonly fromWire: (name: string, hosted: boolean) => string
}

const maxLength = 64

/** `base`, or `base` with the first free number, within `length`. */
export const freeName = (base: string, length: number, taken: (name: string) => boolean, from = 2): string => {
  let name = base.slice(0, length)
  for (let nth = from; taken(name); nth++) name = `${base.slice(0, length - `_${nth}`.length)}_${nth}`
  return name
}

/**
 * Builds the mapping for one request.
 * @param tools what the request offers; provider-defined tools keep their names
 */
export const wireNames = (tools: ReadonlyArray<Tool.Any>): WireNames => {
  // Google and Moonshot want a letter first.
  const plain = (name: string): string =>
    name
      .replaceAll(/[^a-zA-Z0-9_-]/g, "_")
      .replace(/^(?![a-zA-Z_])/, "tool_")
      .slice(0, maxLength)
  const taken = new Set(tools.map(({ name }) => name))
  const aliases = new Map<string, string>()
  const originals = new Map<string, string>()
  const hosted = new Map<string, string>()
  for (const tool of tools) {
    if (Tool.isProviderDefined(tool)) hosted.set(tool.providerName, tool.name)
    if (Tool.isProviderDefined(tool) || plain(tool.name) === tool.name) continue
    const alias = freeName(plain(tool.name), maxLength, (name) => taken.has(name))
    taken.add(alias)
    aliases.set(tool.name, alias)
    originals.set(alias, tool.name)
  }
  return {
    toWire: (name) => aliases.get(name) ?? plain(name),
    fromWire: (given, byProvider) => {
      if (byProvider) return hosted.get(given) ?? given
      // Templates add a namespace, a number, a channel, a tag, quotes, or blanks.
      const [, recipient = given] = /\bto=([^\s<]+)/.exec(given) ?? []
      const bare = recipient
        .replace(/<.*$/s, "")
        .replaceAll(/^["'\s]+|["'\s]+$/g, "")
        .replace(/^(?:functions|default_api|tools)[.:]/, "")
        .replace(/:\d+$/, "")
      const name = taken.has(given) || !taken.has(bare) ? given : bare
      return originals.get(name) ?? name
    }
  }
}
