/** What every measurement gets, and how its figures state a bar. */
export interface Options {
  /** The folder of the bundles. */
  readonly cache: string
  readonly directory: string
  readonly rounds: number
  readonly quick: boolean
  readonly full: boolean
}

export const atLeast = (value: number) => ({ at: "least", value }) as const
export const atMost = (value: number) => ({ at: "most", value }) as const
