export type Shape = { kind: 'square'; side: number } | { kind: 'rectangle'; width: number; height: number };

export function area(shape: Shape): number {
  return shape.kind === 'square' ? shape.side ** 2 : shape.width * shape.height;
}
