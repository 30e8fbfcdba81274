# Threads with a mutex, a condition variable and a queue, and a local server that they talk to.
require 'socket'
require 'timeout'

total = 0
mutex = Mutex.new
threads = (1..8).map { |step| Thread.new { 1000.times { mutex.synchronize { total += step } } } }
threads.each(&:join)
server = TCPServer.new('127.0.0.1', 0)
serving = Thread.new { 10.times { server.accept.then { |client| client.puts(client.gets.upcase).then { client.close } } } }
answers = (1..10).map do |number|
  Thread.new do
    socket = TCPSocket.new('localhost', server.addr[1])
    socket.puts("line #{number}")
    socket.gets.chomp
  end
end
late = begin
  Timeout.timeout(0.05) { sleep }
rescue Timeout::Error
  'timeout'
end
puts [total, answers.map(&:value).uniq.size, serving.join(10) ? 'served' : 'waiting', late].join(' ')
