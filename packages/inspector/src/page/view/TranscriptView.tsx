/** The transcript: the newest messages first in time, earlier ones as one scrolls up. Spec: IP-8 in specs/inspector.md. */
import type { OpenSession } from "../state/OpenSession.ts"
import { MessageView } from "./MessageView.tsx"
import { Empty } from "./Parts.tsx"
import { VirtualList } from "./VirtualList.tsx"

export const TranscriptView = ({ at, session }: { readonly session: OpenSession; readonly at: number | undefined }) => {
  const { transcript } = session
  const messages = transcript.messages.value
  const growing = transcript.growing.value
  const error = transcript.error.value
  if (messages.length === 0) {
    return (
      <Empty>
        {error ??
          (transcript.loaded.value ? "No message yet. Write the first prompt below." : "Reading the transcript…")}
      </Empty>
    )
  }
  const found = at === undefined ? -1 : messages.findLastIndex(({ seq }) => seq <= at)
  return (
    <>
      {error === undefined ? undefined : (
        <p class="problem" role="alert">
          {error}{" "}
          <button type="button" onClick={() => transcript.again()}>
            Try again
          </button>
        </p>
      )}
      <VirtualList
        class="transcript"
        label="Transcript"
        count={messages.length}
        estimate={160}
        stick
        at={found < 0 ? undefined : found}
        keyOf={(index) => messages[index]?.id ?? index}
        // After a failure the reader asks again.
        atStart={
          transcript.earlier.value === undefined || error !== undefined
            ? undefined
            : () => void transcript.loadEarlier()
        }
        row={(index) => {
          const message = messages[index]
          return message === undefined ? undefined : (
            <MessageView message={message} sessionID={session.id} growing={growing} />
          )
        }}
      />
    </>
  )
}
