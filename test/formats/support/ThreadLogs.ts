/** Thread folders for tests: the example of seed 003, and random threads. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { FastCheck as fc } from "effect"
import {
  ThreadID,
  type ThreadMessage,
  type ThreadMetadata,
  type ThreadRecord
} from "../../../packages/formats/src/thread/ThreadRecord.ts"

export const threadID = ThreadID.make("01JKT77280000000000000000A")

export const metadata: ThreadMetadata = {
  id: threadID,
  name: "Pods",
  createdAt: "2025-02-11T10:00:00Z",
  lastMessageAt: "2025-02-11T10:00:03Z",
  model: "anthropic/claude-sonnet-4-5",
  messageCount: 4,
  source: "interactive"
}

/** The example of seed 003, 7.2. */
export const podLines: ReadonlyArray<string> = [
  '{"recordType":"message","schemaVersion":1,"seq":1,"role":"user","content":[{"type":"text","text":"What pods are running?"}],"timestamp":"2025-02-11T10:00:00Z"}',
  '{"recordType":"message","schemaVersion":1,"seq":2,"role":"assistant","content":[{"type":"text","text":"Let me check."},{"type":"toolCall","id":"tc_1","name":"bash","arguments":{"command":"kubectl get pods"}}],"timestamp":"2025-02-11T10:00:01Z"}',
  '{"recordType":"message","schemaVersion":1,"seq":3,"role":"toolResult","content":[{"type":"text","text":"NAME   READY   STATUS\\nnginx  1/1     Running"}],"toolCallId":"tc_1","isError":false,"timestamp":"2025-02-11T10:00:02Z"}',
  '{"recordType":"message","schemaVersion":1,"seq":4,"role":"assistant","content":[{"type":"text","text":"There is one pod running: nginx, with status Running."}],"timestamp":"2025-02-11T10:00:03Z"}'
]

/** Writes a thread's folder, and returns its path. */
export const writeThread = (root: string, lines: string, about: unknown = metadata, id: string = threadID): string => {
  const folder = join(root, id)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "session.jsonl"), lines)
  if (about !== null) writeFileSync(join(folder, "metadata.json"), JSON.stringify(about))
  return folder
}

const text = (role: "user" | "assistant", text: string): ThreadMessage => ({ role, content: [{ type: "text", text }] })

/** An answer with calls, and their results. */
const called = (names: ReadonlyArray<string>, path: string): ReadonlyArray<ThreadMessage> => [
  {
    role: "assistant",
    content: names.map((name, n) => ({ type: "toolCall", id: `${path}-${n}`, name, arguments: { path } }))
  },
  ...names.map((name, n): ThreadMessage => ({
    role: "toolResult",
    content: [{ type: "text", text: `result of ${name}` }],
    toolCallId: `${path}-${n}`,
    isError: false
  }))
]

const toolNames = fc.constantFrom("read", "write", "edit", "bash", "read_file", "write_file", "list_directory")

/** The messages of a plausible conversation: every call has its result directly behind it. */
export const conversation: fc.Arbitrary<ReadonlyArray<ThreadMessage>> = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 200 }).map((words) => [text("user", words)]),
      fc.string({ maxLength: 200 }).map((words) => [text("assistant", words)]),
      fc
        .tuple(fc.array(toolNames, { minLength: 1, maxLength: 4 }), fc.uuid())
        .map(([names, path]) => called(names, path))
    ),
    { minLength: 1, maxLength: 30 }
  )
  .map((steps) => steps.flat())

/** The messages as records from `seq` on, a second apart. */
export const recordsOf = (messages: ReadonlyArray<ThreadMessage>, from = 1): ReadonlyArray<ThreadRecord> =>
  messages.map((message, at) => ({
    recordType: "message",
    schemaVersion: 1,
    seq: from + at,
    ...message,
    timestamp: new Date(Date.UTC(2025, 1, 11, 10) + (from + at) * 1000).toISOString()
  }))

export const linesOf = (records: ReadonlyArray<unknown>): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("")
