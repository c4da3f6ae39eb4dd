/** The epochs of the context: what each began with, and what the model was told since. Spec: IP-15 in specs/inspector.md. */
import { useEffect } from "preact/hooks"
import type { Change, Epoch } from "../fold/Epochs.ts"
import { clockText, countText } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { hrefOf } from "../state/Route.ts"
import { Badge, Empty, Fold, Raw, Text, Time, type Tone } from "./Parts.tsx"

const tones: Readonly<Record<Change["kind"], Tone>> = {
  updated: "plain",
  compacted: "warn",
  pruned: "warn",
  instructions: "plain",
  tools: "plain"
}

const EpochView = ({
  epoch: { at, baseline, changes, seq, sources },
  isLast,
  number,
  sessionID
}: {
  readonly epoch: Epoch
  readonly number: number
  readonly isLast: boolean
  readonly sessionID: string
}) => (
  <li class="epoch">
    <header>
      <h3>Epoch {number}</h3>
      <Time at={at}>{clockText(at)}</Time>
      <a href={hrefOf(sessionID, "events", seq)}>event {seq}</a>
      <span class="soft">
        <Text>{sources.join(", ")}</Text>
      </span>
    </header>
    <Fold title={`Baseline, ${countText(baseline.length, "character")}`} open={isLast}>
      {() => <Raw label={`Baseline of epoch ${number}`} text={baseline} />}
    </Fold>
    {changes.map((change) => (
      <Fold
        key={change.seq}
        title={
          <>
            <Badge tone={tones[change.kind]}>{change.kind}</Badge> <Time at={change.at}>{clockText(change.at)}</Time>
            <span class="one-line soft">
              <Text>{change.text.slice(0, 160)}</Text>
            </span>
          </>
        }
      >
        {() => <Raw label={`Change at event ${change.seq}`} text={change.text} />}
      </Fold>
    ))}
  </li>
)

export const ContextView = ({ session }: { readonly session: OpenSession; readonly at: number | undefined }) => {
  useEffect(() => session.needStory(), [session])
  const version = session.storyVersion.value
  const { dropped, epochs } = session.story.epochs
  if (epochs.length === 0) {
    return <Empty>{session.storyState.value === "live" ? "No context was told yet." : "Reading the history…"}</Empty>
  }
  return (
    <div class="scroller context" tabIndex={0} role="region" aria-label="Context epochs" data-version={version}>
      {dropped === 0 ? undefined : (
        <p class="soft">{`${dropped.toLocaleString("en-US")} older entries are`} not kept: see the events.</p>
      )}
      <ol reversed class="epochs">
        {epochs
          .map((epoch, index) => (
            <EpochView
              key={epoch.seq}
              epoch={epoch}
              number={index + 1}
              isLast={index === epochs.length - 1}
              sessionID={session.id}
            />
          ))
          .toReversed()}
      </ol>
    </div>
  )
}
