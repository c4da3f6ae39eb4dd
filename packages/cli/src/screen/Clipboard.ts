/** Reads a picture of the clipboard, by the programs that reach it on Wayland, X11 and macOS. Spec: SC-569 in specs/screen.md. */
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { Effect } from "effect"
import { maxBytes } from "../arguments/PromptWords.ts"
import { UsageError } from "../support/Errors.ts"
import * as Programs from "../support/Programs.ts"

interface Reader {
  readonly program: string
  readonly words: ReadonlyArray<string>
  /** The picture in the program's output. */
  readonly read: (output: Buffer) => Buffer
}

const asIs = (output: Buffer): Buffer => output

/** AppleScript prints a picture as `«data PNGf89504E47...»`. */
const ofAppleScript = (output: Buffer): Buffer =>
  Buffer.from(/PNGf([0-9A-F]+)/.exec(output.toString("latin1"))?.[1] ?? "", "hex")

export const readers: ReadonlyArray<Reader> = [
  { program: "wl-paste", words: ["--no-newline", "--type", "image/png"], read: asIs },
  { program: "xclip", words: ["-selection", "clipboard", "-target", "image/png", "-out"], read: asIs },
  { program: "pngpaste", words: ["-"], read: asIs },
  { program: "osascript", words: ["-e", "get the clipboard as «class PNGf»"], read: ofAppleScript }
]

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47])

const patience = "5 seconds"

/** The picture as PNG; empty if the program finds none. */
const ask = (path: string, { read, words }: Reader): Effect.Effect<Buffer> =>
  Effect.async<Buffer>((resume) => {
    const child = spawn(path, words, {
      stdio: ["ignore", "pipe", "ignore"],
      cwd: homedir(),
      env: Programs.environment()
    })
    const parts: Array<Buffer> = []
    let size = 0
    child.stdout.on("data", (part: Buffer) => {
      size += part.length
      parts.push(part)
      // Hexadecimal takes two bytes for one.
      if (size > 2 * maxBytes + 100) child.kill()
    })
    child.once("error", () => resume(Effect.succeed(Buffer.alloc(0))))
    child.once("close", (code) => resume(Effect.succeed(code === 0 ? read(Buffer.concat(parts)) : Buffer.alloc(0))))
    return Effect.sync(() => child.kill())
  }).pipe(Effect.timeoutTo({ duration: patience, onSuccess: asIs, onTimeout: () => Buffer.alloc(0) }))

/** The picture that is in the clipboard. */
export const picture: Effect.Effect<Buffer, UsageError> = Effect.gen(function* () {
  const refuse = (message: string) => new UsageError({ message })
  let isInstalled = false
  for (const reader of readers) {
    const path = Programs.find(reader.program)
    if (path === undefined) continue
    isInstalled = true
    const found = yield* ask(path, reader)
    if (!found.subarray(0, signature.length).equals(signature)) continue
    return found.length <= maxBytes
      ? found
      : yield* refuse(`the picture of the clipboard is larger than ${maxBytes / 1024 / 1024} MiB`)
  }
  const names = readers.map(({ program }) => program).join(", ")
  return yield* refuse(
    isInstalled
      ? "the clipboard has no picture"
      : `the clipboard needs one of ${names}; a picture's file can be dropped on the terminal`
  )
})
