# Forked children that answer through a pipe, exec, signals, exit codes and popen.
reader, writer = IO.pipe
children = (1..4).map do |number|
  fork do
    reader.close
    writer.puts(number * number)
    exit!(number)
  end
end
writer.close
codes = children.map { |child| Process.wait2(child)[1].exitstatus }
squares = reader.readlines.map(&:to_i).sort
sleeper = spawn('sleep', '60', pgroup: true)
Process.kill('TERM', -sleeper)
signal = Process.wait2(sleeper)[1].termsig
sorted = IO.popen(['sort'], 'r+') { |sort| sort.puts('b', 'a').then { sort.close_write }.then { sort.read.split.join } }
puts [squares, codes, signal, sorted, `echo from a shell`.chomp, system('false').inspect].flatten.join(' ')
