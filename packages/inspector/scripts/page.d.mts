/** The page's script and style, and the files they were made from. */
export declare const bundled: () => Promise<{
  readonly script: string
  readonly style: string
  readonly inputs: ReadonlyArray<string>
}>
