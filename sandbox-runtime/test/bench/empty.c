/* The least that a program can be: what a launch costs without it. */
int main(void)
{
    return 0;
}
