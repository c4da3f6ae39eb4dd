/**
 * Places records in the tree of a log. Claude Code links records by `uuid` and `parentUuid`, but forks where nothing was
 * retried: each result of parallel calls hangs at its own call, and records without a uuid hang nowhere. Here a result, a
 * note or a setting extends the line that it hangs at, so that forks are only where a person or the tool went back.
 * Spec: FM-137 in specs/formats.md.
 */
export interface ClaudeTree {
  readonly has: (uuid: string) => boolean
  /** A key that no item has; the same for the same log. */
  readonly key: (wanted: string) => string
  /** The item that a child of this record follows; undefined if the record is unknown. */
  readonly after: (uuid: string) => string | undefined
  /** The end of the line that an item is on. */
  readonly endOf: (key: string) => string
  /** The key of the record's item. */
  readonly find: (uuid: string) => string | undefined
  /** The end of the line that grew last; null at first. */
  readonly last: () => string | null
  /** Adds an item. `extends`: later children of its parent follow it instead. */
  readonly add: (item: { readonly key: string; readonly parent: string | null }, uuid?: string) => void
  readonly extend: (item: { readonly key: string; readonly parent: string | null }, uuid?: string) => void
}

export const make = (): ClaudeTree => {
  const keys = new Map<string, string>()
  const used = new Set<string>()
  /** What extends an item. Each look-up shortens the way, so that all ways stay short. */
  const extensions = new Map<string, string>()
  let last: string | null = null
  const endOf = (key: string): string => {
    let end = key
    for (let next = extensions.get(end); next !== undefined; next = extensions.get(end)) end = next
    for (let at = key; at !== end;) {
      const next = extensions.get(at) ?? end
      extensions.set(at, end)
      at = next
    }
    return end
  }
  const add: ClaudeTree["add"] = ({ key }, uuid) => {
    if (uuid !== undefined) keys.set(uuid, key)
    last = key
  }
  return {
    has: (uuid) => keys.has(uuid),
    key: (wanted) => {
      let key = wanted
      for (let number = 2; used.has(key); number++) key = `${wanted}#${number}`
      used.add(key)
      return key
    },
    after: (uuid) => {
      const key = keys.get(uuid)
      return key === undefined ? undefined : endOf(key)
    },
    endOf,
    find: (uuid) => keys.get(uuid),
    last: () => (last === null ? null : endOf(last)),
    add,
    extend: (item, uuid) => {
      if (item.parent !== null) extensions.set(endOf(item.parent), item.key)
      add(item, uuid)
    }
  }
}
