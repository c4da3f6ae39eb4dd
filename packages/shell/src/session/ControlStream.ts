/**
 * Reads the control stream of a shell: records of ended commands and the shell's idle mark, each NUL-terminated. Bytes that a
 * command wrote there are skipped: a record counts only with the token of its command. Pure. Spec: SL-14 in specs/shell.md.
 */

/** The end of a command, as the shell reports it. */
export interface EndRecord {
  readonly token: string
  readonly code: number
  /** Undefined if the shell cannot say, as in a deleted folder of a POSIX shell. */
  readonly cwd: string | undefined
}

export interface ControlStream {
  /** The token of a command that will end. */
  readonly expect: (token: string) => void
  readonly add: (bytes: Buffer) => void
}

export interface ControlEvents {
  readonly ended: (record: EndRecord) => void
  /** The shell reads lines again, after the command of this number, which had this exit code. */
  readonly idle: (command: { readonly number: number; readonly code: number }) => void
}

/** A record is shorter: a path has at most 4,096 bytes. */
const longest = 16_384

export const make = (idle: string, events: ControlEvents): ControlStream => {
  let held = Buffer.alloc(0)
  let tokens: ReadonlyArray<string> = []
  const record = (text: string): EndRecord | undefined => {
    for (const token of tokens) {
      const at = text.lastIndexOf(`${token}> `)
      const match = at < 0 ? null : /^(\d{1,3}) ([^]*)$/.exec(text.slice(at + token.length + 2))
      if (match === null) continue
      const [, code, cwd] = match
      return { token, code: Number(code), cwd: cwd === "" ? undefined : cwd?.replace(/\n$/, "") }
    }
    return undefined
  }
  const message = (text: string) => {
    const found = record(text)
    if (found !== undefined) {
      tokens = tokens.filter((token) => token !== found.token)
      return events.ended(found)
    }
    const at = text.lastIndexOf(`${idle} `)
    const match = at < 0 ? null : /^(\d{1,15}) (\d{1,3})$/.exec(text.slice(at + idle.length + 1))
    if (match !== null) events.idle({ number: Number(match[1]), code: Number(match[2]) })
  }
  return {
    expect: (token) => {
      tokens = [...tokens, token]
    },
    add: (chunk) => {
      let bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0)) {
        message(bytes.subarray(Math.max(0, end - longest), end).toString("utf8"))
        bytes = bytes.subarray(end + 1)
      }
      held = Buffer.from(bytes.subarray(Math.max(0, bytes.length - longest)))
    }
  }
}
