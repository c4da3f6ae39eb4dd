/** A transcript, and one message of it. Spec: IP-8, IP-18 in specs/http.md. */
import type { ComponentChildren } from "preact"
import { problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import type { AssistantMessage, Message, Part, ToolPart } from "@daybook/log/domain/Message"
import { clockText, costText, countText, durationText, tokensText } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { hrefOf } from "../state/Route.ts"
import { Code, Markdown } from "./Markdown.tsx"
import { Badge, Copy, Empty, Fold, Raw, Text, Time, type Tone } from "./Parts.tsx"
import { VirtualList } from "./VirtualList.tsx"

interface MessageProps {
  readonly message: Message
  readonly sessionID: string
  readonly growing: ReadonlyMap<string, string>
}

const toolTones: Readonly<Record<ToolPart["state"], Tone>> = {
  pending: "plain",
  running: "live",
  completed: "good",
  error: "bad"
}

/** What a call acts on, in a few words. */
const callText = ({ input, raw }: ToolPart): string => {
  const values = Object.values(input ?? {}).filter((value) => typeof value === "string")
  return (values[0] ?? raw ?? "").replace(/\s+/g, " ").slice(0, 160)
}

const outputOf = ({ content, error }: ToolPart): string =>
  [
    ...(error === undefined ? [] : [error.message]),
    ...(content ?? []).map((each) => (each.type === "text" ? each.text : `[${each.mime} ${each.name ?? each.uri}]`))
  ].join("\n")

const Tool = ({ part }: { readonly part: ToolPart }) => {
  const { completedAt, input, name, ranAt, state } = part
  const output = outputOf(part)
  const title = (
    <>
      <span class="tool-name">
        <Text>{name}</Text>
      </span>
      <span class="tool-call">
        <Text>{callText(part)}</Text>
      </span>
      {completedAt === undefined || ranAt === undefined ? undefined : (
        <span class="soft">{durationText(completedAt - ranAt)}</span>
      )}
      <Badge tone={toolTones[state]}>{state}</Badge>
    </>
  )
  return (
    <div class={`tool ${state}`}>
      <Fold title={title}>
        {() => (
          <>
            <Code language="json" text={JSON.stringify(input ?? part.raw ?? {}, undefined, 2)} />
            {output === "" ? undefined : <Raw label={`Output of ${name}`} text={output} />}
          </>
        )}
      </Fold>
    </div>
  )
}

const PartView = ({ growing, part }: { readonly part: Part; readonly growing: string | undefined }) => {
  switch (part.type) {
    case "tool":
      return <Tool part={part} />
    case "text":
      return <Markdown text={part.text ?? growing ?? ""} />
    case "reasoning":
      return (
        <div class="reasoning">
          <Fold title="Reasoning" open={part.text === undefined}>
            {() => <Markdown text={part.text ?? growing ?? ""} />}
          </Fold>
        </div>
      )
  }
}

/** What the answer took: tokens, cost, time. */
const answerFacts = ({ completedAt, cost, createdAt, model, tokens }: AssistantMessage): string =>
  [
    model.id,
    ...(tokens === undefined ? [] : [`${tokensText(tokens.input)} in`, `${tokensText(tokens.output)} out`]),
    ...(cost === undefined || cost === 0 ? [] : [costText(cost)]),
    ...(completedAt === undefined ? [] : [durationText(completedAt - createdAt)])
  ].join(" \u00b7 ")

/** The answer's own words. */
const wordsOf = ({ content }: AssistantMessage): string =>
  content.flatMap((part) => (part.type === "text" && part.text !== undefined ? [part.text] : [])).join("\n\n")

const Head = ({
  children,
  message,
  name
}: {
  readonly message: Message
  readonly name: string
  readonly children?: ComponentChildren
}) => (
  <header class="message-head">
    <h3>{name}</h3>
    <Time at={message.createdAt}>{clockText(message.createdAt)}</Time>
    <span class="soft">{children}</span>
  </header>
)

/** Why the request failed, or what the answer lacks. */
const Fault = ({ message }: { readonly message: AssistantMessage }) => {
  const fault = message.error ?? problemOfMessage(message)
  return fault === undefined ? undefined : (
    <p class="problem">
      <Text>{fault.message}</Text>
    </p>
  )
}

const Answer = ({ growing, message, sessionID }: MessageProps & { readonly message: AssistantMessage }) => (
  <>
    <Head message={message} name="Assistant">
      <bdi>{answerFacts(message)}</bdi> <a href={hrefOf(sessionID, "requests", message.seq)}>what it was shown</a>{" "}
      <Copy text={wordsOf(message)} what="answer" />
    </Head>
    {message.content.map((part) => (
      <PartView key={`${part.type} ${part.id}`} part={part} growing={growing.get(`${message.id} ${part.id}`)} />
    ))}
    <Fault message={message} />
    {message.completedAt === undefined && message.error === undefined ? (
      <p class="soft working">Working…</p>
    ) : undefined}
  </>
)

/** A note of the runtime, folded. */
const Note = ({ message, name, text }: { readonly message: Message; readonly name: string; readonly text: string }) => (
  <Fold
    title={
      <>
        <strong>{name}</strong> <span class="soft">{countText(text.length, "character")}</span>{" "}
        <Time at={message.createdAt}>{clockText(message.createdAt)}</Time>
      </>
    }
  >
    {() => <Markdown text={text} />}
  </Fold>
)

const Body = (props: MessageProps) => {
  const { message } = props
  switch (message.type) {
    case "user":
      return (
        <>
          <Head message={message} name="You" />
          <Markdown text={message.text} />
        </>
      )
    case "assistant":
      return <Answer {...props} message={message} />
    case "system":
      return <Note message={message} name="Context" text={message.text} />
    case "synthetic":
      return <Note message={message} name="Runtime" text={message.text} />
    case "compaction":
      return <Note message={message} name={`Compaction, ${message.reason}`} text={message.summary} />
    case "branch-summary":
      return <Note message={message} name="Summary of a branch" text={message.summary} />
    case "shell":
      return (
        <>
          <Head message={message} name="Shell" />
          <Code language="bash" text={message.command} />
          {message.output === undefined ? undefined : <Raw label="Output" text={message.output} />}
        </>
      )
    case "agent-switched":
      return (
        <p class="soft">
          The agent is <Text>{message.agent}</Text> from here on.
        </p>
      )
    case "model-switched":
      return (
        <p class="soft">
          The model is <Text>{`${message.model.providerID}/${message.model.id}`}</Text> from here on.
        </p>
      )
  }
}

export const MessageView = (props: MessageProps) => (
  <article class={`message ${props.message.type}`}>
    <Body {...props} />
  </article>
)

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
