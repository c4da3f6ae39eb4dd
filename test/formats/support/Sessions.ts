/** Sessions and messages for documents. */
import { Schema } from "effect"
import { Message, Session } from "../../../packages/log/src/domain/Message.ts"

const at = Date.parse("2026-04-01T08:30:00.000Z")

export const session = Schema.decodeUnknownSync(Session)({
  id: "ses_document",
  location: { directory: "/work/shop" },
  title: "Fix the <till>",
  cost: 0,
  tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
  createdAt: at,
  updatedAt: at
})

const decode = Schema.decodeUnknownSync(Message)

let seq = 0
const message = (fields: object): Message =>
  decode({ id: `msg_${++seq}`, seq, createdAt: at + seq * 60_000, ...fields })

export const prompt = (text: string, more: object = {}) => message({ type: "user", text, ...more })

export const answer = (content: ReadonlyArray<object>, more: object = {}) =>
  message({
    type: "assistant",
    agent: "build",
    model: { providerID: "anthropic", id: "claude-sonnet-4-5" },
    content,
    cost: 0.25,
    tokens: { input: 1_000, output: 50, reasoning: 0, cache: { read: 600, write: 100 } },
    ...more
  })

export const text = (words: string) => ({ type: "text", id: "t", text: words })
export const reasoning = (words: string) => ({ type: "reasoning", id: "r", text: words })

export const tool = (name: string, input: object, content: ReadonlyArray<object>, more: object = {}) => ({
  type: "tool",
  id: "call_1",
  name,
  state: "completed",
  input,
  content,
  createdAt: at,
  ...more
})

/** One pixel. */
export const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** One message of each kind. */
export const allKinds = (): ReadonlyArray<Message> => [
  prompt("Look at **this**\n<b>picture</b>", {
    files: [{ uri: "attachment:0", mime: "image/png", name: "till.png" }],
    expansion: {
      parts: [
        { kind: "media", name: "till.png", content: { type: "file", uri: pixel, mime: "image/png" } },
        { kind: "file", name: "src/till.ts", content: { type: "text", text: "export const till = 1\n" } }
      ]
    }
  }),
  answer([
    reasoning("The till counts twice."),
    text("I look at `till.ts`:\n\n```ts\nconst a = 1 < 2\n```\n\n| n | v |\n|--:|---|\n| 1 | x |"),
    tool("read", { path: "src/till.ts" }, [
      { type: "text", text: "1: export const till = 1\n" },
      { type: "file", uri: pixel, mime: "image/png", name: "seen.png" }
    ]),
    tool("bash", { command: "npm test" }, [], { state: "error", error: { type: "failed", message: "exit code 1" } })
  ]),
  message({ type: "system", text: "The folder changed." }),
  message({ type: "synthetic", text: "Remember the tests." }),
  message({ type: "shell", callID: "c", command: "git status", output: "clean\n" }),
  message({ type: "agent-switched", agent: "plan" }),
  message({ type: "model-switched", model: { providerID: "openai", id: "gpt-5.5" } }),
  message({ type: "branch-summary", summary: "The branch tried a cache." }),
  message({ type: "compaction", reason: "auto", summary: "We fixed the till.", recent: "" }),
  prompt("And now the tests"),
  answer([text("Done.")], { error: { type: "aborted", message: "interrupted by the user" }, estimated: true })
]
